import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { issueTokenFor, startLatchkey } from './latchkey.ts';
import { startNode } from './pinned.ts';
import { median } from '../harness/statistics.ts';

const sink = fileURLToPath(new URL('./mail-sink.ts', import.meta.url));
const warmUps = 50;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

/** Sends one request and reads the answer; answers how long that took, and refuses any status but the expected one. */
function timed({ port, path, headers = {}, body, expected }) {
  const payload = body === undefined ? undefined : JSON.stringify(body);
  const type = payload === undefined ? {} : { 'content-type': 'application/json' };
  const method = payload === undefined ? 'GET' : 'POST';
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const options = { agent, host: '127.0.0.1', port, path: `/api/v1${path}`, method };
    const sent = request({ ...options, headers: { ...headers, ...type } }, (answer) => {
      answer.resume();
      answer.once('error', reject);
      answer.once('end', () => {
        if (answer.statusCode === expected) resolve({ ms: performance.now() - sentAt, headers: answer.headers });
        else reject(new Error(`${path} was answered ${answer.statusCode}, not ${expected}`));
      });
    });
    sent.once('error', reject);
    sent.end(payload);
  });
}

/** What is tried, by the part of the row. */
const attempts = {
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

async function compare(server, part, count) {
  const emails = { known: server.person.email, unknown: 'eve@example.com' };
  const spent = { known: [], unknown: [] };
  const after = { known: [], unknown: [] };
  for (let pair = 0; pair < count; pair++) {
    // Known and unknown addresses take turns; which of a pair is first is left to chance.
    const order = Math.random() < 0.5 ? ['known', 'unknown'] : ['unknown', 'known'];
    for (const kind of order) {
      spent[kind].push((await attempts[part](server.port, emails[kind])).ms);
      // Whoever asks for something else at once: does that tell what is done behind the answer?
      after[kind].push((await timed({ port: server.port, path: '/org/exists', expected: 200 })).ms);
    }
  }
  const medians = ({ known, unknown }) => ({ knownMs: median(known), unknownMs: median(unknown) });
  return { ...medians(spent), after: medians(after) };
}

async function startMailSink() {
  const child = startNode([sink], { core: 'others', env: {} });
  const [chunk] = await once(child.stdout, 'data');
  return Number(chunk.toString());
}

async function allowCodes({ api, person }) {
  const { session } = await issueTokenFor(api, person, { scopes: ['org:read'] });
  const allowedMethods = [{ type: 'password' }, { type: 'otp' }];
  const answer = await fetch(`${api}/orgAuthConfig/updateAuthMethod`, {
    method: 'POST',
    headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
    body: JSON.stringify({ authMethod: [{ order: 1, allowedMethods }] }),
  });
  if (!answer.ok) throw new Error(`codes could not be allowed: ${answer.status} ${await answer.text()}`);
}

/**
 * T9: what a known and an unknown address take, for each of these rows. Returns, by the row's part, the two medians in
 * milliseconds, and those of a request for something else that is sent at once after the answer (`after`).
 */
export async function measureTiming(rows, { tell }) {
  const mail = await startMailSink();
  const server = await startLatchkey({ core: 'server', env: { SMTP_URL: `smtp://127.0.0.1:${mail}` } });
  await allowCodes(server);
  const results = {};
  for (const { part, what, tries } of rows) {
    await compare(server, part, warmUps);
    results[part] = await compare(server, part, tries);
    const { knownMs, unknownMs } = results[part];
    tell(`T9: ${what}, ${tries} tries each: ${knownMs.toFixed(3)} ms known, ${unknownMs.toFixed(3)} ms unknown`);
  }
  return results;
}
