import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { median } from '../harness/statistics.ts';
import { type Latchkey, startLatchkey } from './latchkey.ts';
import { startNode } from './pinned.ts';
import type { Measuring, Row } from './rows.ts';

const sink = fileURLToPath(new URL('./mail-sink.ts', import.meta.url));
const warmUps = 50;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

interface Medians {
  readonly knownMs: number;
  readonly unknownMs: number;
}

/** The medians of one part, and those of a request for something else that is sent at once after the answer. */
export interface Timing extends Medians {
  readonly after: Medians;
}

interface Wanted {
  readonly port: number;
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: unknown;
  /** The status of the answer. */
  readonly expected: number;
}

interface Timed {
  readonly ms: number;
  readonly headers: IncomingHttpHeaders;
}

/** Sends one request and reads the answer. Refuses any status but the expected one. */
function timed({ port, path, headers = {}, body, expected }: Wanted): Promise<Timed> {
  const payload = body === undefined ? undefined : JSON.stringify(body);
  const type = payload === undefined ? {} : { 'content-type': 'application/json' };
  const method = payload === undefined ? 'GET' : 'POST';
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const options = { agent, host: '127.0.0.1', port, path: `/api/v1${path}`, method };
    const sent = request({ ...options, headers: { ...headers, ...type } }, (response) => {
      response.resume();
      response.once('error', reject);
      response.once('end', () => {
        if (response.statusCode === expected) resolve({ ms: performance.now() - sentAt, headers: response.headers });
        else reject(new Error(`${path} was answered ${response.statusCode}, not ${expected}`));
      });
    });
    sent.once('error', reject);
    sent.end(payload);
  });
}

/** What is tried, by the part of the row. */
const attempts: Readonly<Record<string, (port: number, email: string) => Promise<Timed>>> = {
  password: async (port, email) => {
    const begun = await timed({ port, path: '/userAccount/initAuth', body: { email }, expected: 200 });
    const headers = { 'x-session-token': begun.headers['x-session-token'] };
    const body = { method: 'password', credentials: { password: 'Difference-engine-1822' }, email };
    return timed({ port, path: '/userAccount/authenticate', headers, body, expected: 401 });
  },
  code: async (port, email) => {
    const begun = await timed({ port, path: '/userAccount/initAuth', body: { email }, expected: 200 });
    const headers = { 'x-session-token': begun.headers['x-session-token'] };
    const body = { method: 'otp', credentials: { otp: '123456' }, email };
    return timed({ port, path: '/userAccount/authenticate', headers, body, expected: 401 });
  },
  forgot: (port, email) => timed({ port, path: '/userAccount/password/forgot', body: { email }, expected: 200 }),
  generate: (port, email) => timed({ port, path: '/userAccount/login/otp/generate', body: { email }, expected: 200 }),
};

async function compare(server: Latchkey, part: string, count: number): Promise<Timing> {
  const attempt = attempts[part];
  if (!attempt) throw new Error(`there is no part ${part}`);
  const emails = { known: server.user.email, unknown: 'eve@example.com' };
  const spent: Spent = { known: [], unknown: [] };
  const after: Spent = { known: [], unknown: [] };
  for (let pair = 0; pair < count; pair++) {
    // Known and unknown addresses take turns; which of a pair is first is left to chance.
    const order = Math.random() < 0.5 ? (['known', 'unknown'] as const) : (['unknown', 'known'] as const);
    for (const kind of order) {
      spent[kind].push((await attempt(server.port, emails[kind])).ms);
      // Whether the next request shows what is done after the answer.
      after[kind].push((await timed({ port: server.port, path: '/org/exists', expected: 200 })).ms);
    }
  }
  return { ...medians(spent), after: medians(after) };
}

/** Milliseconds. */
interface Spent {
  readonly known: number[];
  readonly unknown: number[];
}

const medians = ({ known, unknown }: Spent): Medians => ({ knownMs: median(known), unknownMs: median(unknown) });

async function startMailSink(): Promise<number> {
  const { stdout } = startNode([sink], { core: 'others' });
  const [line] = await once(stdout, 'data');
  return Number(line);
}

async function allowCodes({ client, user }: Latchkey): Promise<void> {
  const { accessToken: token } = await client.signIn(user);
  const allowedMethods = [{ type: 'password' }, { type: 'otp' }];
  const body = { authMethod: [{ order: 1, allowedMethods }] };
  await client.ask('POST', '/orgAuthConfig/updateAuthMethod', { token, body });
}

/** T9: what a known and an unknown address take, for each of these rows, by its part. */
export async function measureTiming(rows: readonly Row[], { tell }: Measuring) {
  const mail = await startMailSink();
  const server = await startLatchkey({ core: 'server', env: { SMTP_URL: `smtp://127.0.0.1:${mail}` } });
  await allowCodes(server);
  const results: Record<string, Timing> = {};
  for (const { part = '', what, tries = 0 } of rows) {
    await compare(server, part, warmUps);
    const timing = await compare(server, part, tries);
    results[part] = timing;
    const { knownMs, unknownMs } = timing;
    tell(`T9: ${what}, ${tries} tries each: ${knownMs.toFixed(3)} ms known, ${unknownMs.toFixed(3)} ms unknown`);
  }
  return results;
}
