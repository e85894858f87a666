import { createHmac } from 'node:crypto';
import type { Json } from '../harness/api-client.ts';
import { ServiceProcess } from '../harness/service-process.ts';

const scopedSecret = 'faults-share-this-with-services-4711';

/** A scoped token that reads events, signed as a trusted service does. */
function readerToken(): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const signed = `${part({ alg: 'HS256' })}.${part({ scopes: ['EVENTS_READ'], exp })}`;
  return `${signed}.${createHmac('sha256', scopedSecret).update(signed).digest('base64url')}`;
}

/** An event as a trusted service reads it. */
export interface LoggedEvent {
  readonly id: string;
  readonly sequence: number;
  readonly eventType: string;
  readonly payload: Json;
}

interface Options {
  /** The entry point of a build. */
  readonly entry: string;
  readonly dataDir: string;
  /** Further variables, such as EVENTS_URL. */
  readonly env?: Readonly<Record<string, string>>;
  readonly wrap?: readonly string[];
  /** What it is called where there are several. */
  readonly name?: string;
}

/** A build of the service as a process of its own. */
export class Service extends ServiceProcess {
  readonly dataDir: string;
  readonly name: string;

  constructor({ entry, dataDir, env = {}, wrap = [], name = 'a' }: Options) {
    const own = { RATE_LIMIT: 'off', DATA_DIR: dataDir, SCOPED_JWT_SECRET: scopedSecret };
    super({ entry, wrap, env: { ...own, ...env } });
    this.dataDir = dataDir;
    this.name = name;
  }

  /** Creates the organization; returns a personal access token of its administrator that does not expire. */
  async createOrganization(): Promise<string> {
    return this.issueToken(await this.setUp(), { name: 'faults', expiryDays: 'never' });
  }

  /** The access token of a new session of the administrator. */
  async newSession(): Promise<string> {
    return (await this.signIn()).accessToken;
  }

  /** Every event that is kept, in order. */
  async events(): Promise<readonly LoggedEvent[]> {
    const events: LoggedEvent[] = [];
    for (let next = 0; ; ) {
      const { body } = await this.ask('GET', `/events?after=${next}&limit=1000`, { token: readerToken() });
      if (body.events.length === 0) return events;
      events.push(...body.events);
      next = body.nextAfter;
    }
  }

  /** How many events wait for each subscription. */
  async behind(token: string): Promise<readonly number[]> {
    const { body } = await this.ask('GET', '/events/relays', { token });
    return body.relays.map((relay: { readonly behind: number }) => relay.behind);
  }
}
