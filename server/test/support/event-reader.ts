import { vi } from 'vitest';
import type { Client, Json, TestApp } from './test-app.ts';

/** An event as it came over a stream. */
export interface ReadEvent {
  readonly id: string;
  readonly event: string;
  /** The envelope. */
  readonly data: Json;
}

/** The fields of a frame, as browsers read them; a comment is a field without a name. */
function fieldsOf(frame: string): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  for (const line of frame.split('\n')) {
    const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    fields[name] = name in fields ? `${fields[name]}\n${value}` : value;
  }
  return fields;
}

interface Asked {
  /** Query of the address, with its question mark. */
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Reader of GET /events as a stream. */
export class EventReader {
  readonly status: number;
  readonly headers: Headers;
  /** Complete events. */
  readonly events: ReadEvent[] = [];
  comments = 0;
  retryMs: number | null = null;
  readonly #leaving: AbortController;
  readonly #done: Promise<void>;
  #text = '';
  #rest = '';
  #ended: 'orderly' | 'broken' | null = null;

  private constructor(response: Response, leaving: AbortController) {
    this.status = response.status;
    this.headers = response.headers;
    this.#leaving = leaving;
    this.#done = this.#readAll(response);
  }

  /** Asks for the stream and waits for the head of the answer. */
  static async open(app: TestApp, client: Client, { query = '', headers = {} }: Asked = {}): Promise<EventReader> {
    const leaving = new AbortController();
    const shown = client.credential === null ? {} : { authorization: `Bearer ${client.credential}` };
    const response = await fetch(`${app.url}/api/v1/events${query}`, {
      headers: { accept: 'text/event-stream', ...shown, ...headers },
      signal: leaving.signal,
    });
    return new EventReader(response, leaving);
  }

  async #readAll(response: Response): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) this.#take(decoder.decode(chunk, { stream: true }));
      this.#ended = 'orderly';
    } catch {
      this.#ended = 'broken';
    }
  }

  #take(text: string): void {
    this.#text += text;
    const frames = (this.#rest + text).split('\n\n');
    this.#rest = frames.pop() ?? '';
    for (const fields of frames.map(fieldsOf)) {
      const { id, event, data, retry } = fields;
      if ('' in fields) this.comments += 1;
      if (retry !== undefined) this.retryMs = Number(retry);
      if (id !== undefined && event !== undefined && data !== undefined) {
        this.events.push({ id, event, data: JSON.parse(data) });
      }
    }
  }

  /** Everything that came. */
  get text(): string {
    return this.#text;
  }

  get ids(): number[] {
    return this.events.map(({ id }) => Number(id));
  }

  /** End of the stream: by the end of the response, or broken off; `null` while it continues. */
  get ended(): 'orderly' | 'broken' | null {
    return this.#ended;
  }

  /** Waits for a total number of events and returns them. */
  async take(count: number): Promise<ReadEvent[]> {
    await vi.waitUntil(() => this.events.length >= count || this.#ended, { timeout: 15_000, interval: 10 });
    return this.events;
  }

  /** Waits until it is over. */
  async over(): Promise<'orderly' | 'broken' | null> {
    await vi.waitUntil(() => this.#ended, { timeout: 15_000, interval: 10 });
    return this.#ended;
  }

  /** Hangs up. */
  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#done;
  }
}

/** Writes events by adding users. */
export async function addEvents(admin: Client, count: number, name = 'person'): Promise<void> {
  for (let made = 0; made < count; made += 1) {
    const email = `${name}-${made}@example.com`;
    const { status, text } = await admin.post('/users', { fullName: `Person ${made}`, email });
    if (status !== 201) throw new Error(`no user: ${status} ${text}`);
  }
}

/** Lets the monotonic clock stand wherever a test wants it, until `restore`. */
export class MonotonicClock {
  #aheadMs = 0;
  readonly #spy;

  /** @param options.stands advances by `advance` alone, however long anything takes */
  constructor({ stands = false } = {}) {
    const original = performance.now.bind(performance);
    // Whole milliseconds: with fractions, what is advanced by a second may differ by less than one.
    const begunMs = Math.ceil(original());
    const current = stands ? () => begunMs : original;
    this.#spy = vi.spyOn(performance, 'now').mockImplementation(() => current() + this.#aheadMs);
  }

  advance(ms: number): void {
    this.#aheadMs += ms;
  }

  restore(): void {
    this.#spy.mockRestore();
  }
}
