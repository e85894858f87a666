import { createHmac } from 'node:crypto';
import { end, signal, start } from './processes.ts';

const startMsMax = 30_000;
const scopedSecret = 'faults-share-this-with-services-4711';

/** Who founds the organization of a test. */
export const founder = {
  accountType: 'business',
  contactEmail: 'ada@example.com',
  registeredName: 'Analytical Engines',
  adminFullName: 'Ada Lovelace',
  password: 'Analytical-engine-1843',
};

/** A scoped token that reads events, signed as a trusted service does. */
function readerToken() {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const signed = `${part({ alg: 'HS256' })}.${part({ scopes: ['EVENTS_READ'], exp })}`;
  return `${signed}.${createHmac('sha256', scopedSecret).update(signed).digest('base64url')}`;
}

/** The built service as a process of its own. */
export class Service {
  url = '';
  child = null;

  /**
   * @param options.entry the entry point of a build
   * @param options.dataDir its data directory
   * @param options.env further variables, such as EVENTS_URL
   * @param options.wrap a program and its arguments that starts it, such as a tracer
   */
  constructor({ entry, dataDir, env = {}, wrap = [] }) {
    Object.assign(this, { entry, dataDir, env, wrap });
  }

  /** Starts the process without waiting for anything. */
  spawn() {
    const [command, ...args] = [...this.wrap, process.execPath, this.entry];
    this.url = '';
    this.child = start(command, args, {
      env: {
        PORT: '0',
        RATE_LIMIT: 'off',
        DATA_DIR: this.dataDir,
        SCOPED_JWT_SECRET: scopedSecret,
        ...this.env,
      },
    });
    const { child } = this;
    let head = '';
    this.listening = new Promise((resolve, reject) => {
      child.stdout.on('data', (text) => {
        head = (head + text).slice(0, 50_000);
        const [, url] = /"address":"(http:[^"]+)"/.exec(head) ?? [];
        if (url === undefined) return;
        this.url = url;
        resolve();
      });
      child.ended.then(() => reject(new Error(`the service ended at its start: ${child.said().trim().slice(-1_000)}`)));
      setTimeout(() => reject(new Error('the service does not listen')), startMsMax).unref();
    });
    this.listening.catch(() => {});
  }

  async start() {
    this.spawn();
    await this.listening;
  }

  /** Kills it on the spot. */
  async kill() {
    await end(this.child, 'SIGKILL');
  }

  /** Sends it a signal. */
  signal(name) {
    signal(this.child, name);
  }

  /** Ends it in order. Throws where it doesn't end so. */
  async stop() {
    const { code } = await end(this.child);
    if (code !== 0) throw new Error(`the service ended with ${code}: ${this.child.said().slice(-500)}`);
  }

  /** Calls `path` below /api/v1; answers `{ status, body }`. Rejects without an answer. */
  async call(method, path, { body, token, headers = {} } = {}) {
    const answer = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? {} : JSON.parse(text), headers: answer.headers };
  }

  /** The status of `/health/live` or `/health/ready`. */
  async health(which) {
    return (await fetch(`${this.url}/health/${which}`)).status;
  }

  /** The same as `call`, and throws unless the answer is good. */
  async ask(method, path, options) {
    const { status, body, headers } = await this.call(method, path, options);
    if (status >= 200 && status < 300) return { body, headers };
    throw new Error(`${method} ${path} was answered ${status}: ${JSON.stringify(body).slice(0, 300)}`);
  }

  /** Signs the founder in; answers the session's token. */
  async signIn() {
    const begun = await this.ask('POST', '/userAccount/initAuth', { body: { email: founder.contactEmail } });
    const credentials = { password: founder.password };
    const { body } = await this.ask('POST', '/userAccount/authenticate', {
      body: { method: 'password', credentials, email: founder.contactEmail },
      headers: { 'x-session-token': begun.headers.get('x-session-token') },
    });
    return body.accessToken;
  }

  /** Founds the organization; answers a personal access token of its administrator that does not expire. */
  async found() {
    await this.ask('POST', '/org', { body: founder });
    const wish = { name: 'faults', expiryDays: 'never' };
    const { body } = await this.ask('POST', '/personal-access-tokens', { token: await this.signIn(), body: wish });
    return body.token.accessToken;
  }

  /** Every event that is kept, in order, as a trusted service reads them. */
  async events(after = 0) {
    const events = [];
    for (let next = after; ; ) {
      const { body } = await this.ask('GET', `/events?after=${next}&limit=1000`, { token: readerToken() });
      if (body.events.length === 0) return events;
      events.push(...body.events);
      next = body.nextAfter;
    }
  }

  /** The state of the ways out, by name. */
  async relays(token) {
    const { body } = await this.ask('GET', '/events/relays', { token });
    return Object.fromEntries(body.relays.map((relay) => [relay.name, relay]));
  }
}
