import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Calls a service on connections that stay open, and remembers each call: `{ sentMs, tookMs, status, retryAfter }`, the
 * times by the monotonic clock and the status as text, or the error's code in its place.
 */
export class Callers {
  calls = [];
  #agent = new Agent({ keepAlive: true, noDelay: true });
  #pending = new Set();

  constructor({ service, token }) {
    Object.assign(this, { service, token });
  }

  /** Makes one call; answers it, and with it the text of its answer. Never throws. */
  call({ method = 'GET', path, body, headers = {} }) {
    const sent = body === undefined || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    const type = sent === undefined ? {} : { 'content-type': 'application/json', 'content-length': sent.length };
    const sentMs = performance.now();
    const ended = new Promise((resolve) => {
      const done = (status, more = {}) => {
        const call = { sentMs, tookMs: performance.now() - sentMs, status: String(status), ...more };
        this.calls.push({ ...call, text: undefined });
        resolve(call);
      };
      const own = { authorization: `Bearer ${this.token}`, ...type };
      const options = { agent: this.#agent, method, headers: { ...own, ...headers } };
      const asked = request(`${this.service.url}/api/v1${path}`, options, (answer) => {
        const chunks = [];
        answer.on('data', (chunk) => chunks.push(chunk));
        answer.once('error', (error) => done(error.code));
        answer.once('end', () => {
          const retryAfter = answer.headers['retry-after'];
          done(answer.statusCode, { retryAfter, text: Buffer.concat(chunks).toString() });
        });
      });
      asked.once('error', (error) => done(error.code ?? error.message));
      asked.end(sent);
    });
    this.#pending.add(ended);
    ended.finally(() => this.#pending.delete(ended));
    return ended;
  }

  /** Calls at a rate, whether or not what was asked earlier is answered. */
  async atRate(perSecond, seconds, next) {
    const startedMs = performance.now();
    for (let count = 0; count < perSecond * seconds; ) {
      const due = Math.min(perSecond * seconds, ((performance.now() - startedMs) / 1_000) * perSecond);
      for (; count < due; count += 1) this.call(next(count));
      await sleep(2);
    }
  }

  /** So many callers who each ask anew as soon as they were answered, until told to stop. */
  crowd(size, next) {
    let isOver = false;
    let count = 0;
    const working = Array.from({ length: size }, async () => {
      while (!isOver) {
        count += 1;
        const { status } = await this.call(next(count));
        if (!/^\d/.test(status)) await sleep(20);
      }
    });
    return async () => {
      isOver = true;
      await Promise.all(working);
    };
  }

  /** Waits until everything is answered. */
  async settled() {
    await Promise.all(this.#pending);
  }

  /** Takes what was called so far. */
  take() {
    return this.calls.splice(0);
  }

  close() {
    this.#agent.destroy();
  }
}

/** The value that `share` (0 to 1) of the calls don't exceed, in milliseconds; NaN for none. */
export function percentileMs(calls, share) {
  const sorted = calls.map(({ tookMs }) => tookMs).sort((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** How often each status came, as a text. */
export function tally(calls) {
  const counts = {};
  for (const { status } of calls) counts[status] = (counts[status] ?? 0) + 1;
  return Object.entries(counts)
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ');
}
