import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startNode, temporaryFolder } from './pinned.ts';

const entryPoint = fileURLToPath(new URL('../dist/bin/server.js', import.meta.url));
const startSecondsMax = 60;
const administrator = { email: 'ada@example.com', password: 'Analytical-engine-1843' };

/** A port at which nothing listens right now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function untilReady(child, port, logFile) {
  let ended = false;
  child.ended.then(() => {
    ended = true;
  });
  const deadline = Date.now() + startSecondsMax * 1000;
  while (Date.now() < deadline && !ended) {
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => null);
    if (answer?.status === 200) return;
    await sleep(5);
  }
  const lastWords = readFileSync(logFile, 'utf8').trim().split('\n').slice(-20).join('\n');
  throw new Error(`Latchkey ${ended ? 'ended at start' : `was not ready in ${startSecondsMax} s`}:\n${lastWords}`);
}

async function post(url, { headers = {}, body }) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`Latchkey answered ${answer.status} to POST ${url}: ${text.slice(0, 300)}`);
  return { headers: answer.headers, body: text === '' ? {} : JSON.parse(text) };
}

/** Signs somebody (`{ email, password }`) in at `api` (the address with /api/v1); answers the session's token. */
export async function signIn(api, { email, password }) {
  const begun = await post(`${api}/userAccount/initAuth`, { body: { email } });
  const done = await post(`${api}/userAccount/authenticate`, {
    headers: { 'x-session-token': begun.headers.get('x-session-token') },
    body: { method: 'password', credentials: { password }, email },
  });
  return done.body.accessToken;
}

/**
 * Signs somebody (`{ email, password }`) in at `api` (the address with /api/v1) and issues personal access tokens with
 * these scopes, as many as `count` says, by the given name and a number. Returns `{ userId, token, session }`, the last
 * of them and the session's own token.
 */
export async function issueTokenFor(api, person, { scopes, count = 1, name = 'bench' }) {
  const session = await signIn(api, person);
  let token = null;
  for (let number = 1; number <= count; number++) {
    const issued = await post(`${api}/personal-access-tokens`, {
      headers: { authorization: `Bearer ${session}` },
      body: { name: `${name} ${number}`, scopes },
    });
    token = issued.body.token.accessToken;
  }
  const { userId } = JSON.parse(Buffer.from(session.split('.')[1], 'base64url').toString('utf8'));
  return { userId, token, session };
}

/**
 * Makes an organization at `api` (the address with /api/v1) and issues its administrator a personal access token with
 * these scopes. Returns `{ userId, token }`.
 */
export async function issueToken(api, scopes = ['user:read']) {
  await post(`${api}/org`, {
    body: {
      accountType: 'business',
      contactEmail: administrator.email,
      registeredName: 'Analytical Engines',
      adminFullName: 'Ada Lovelace',
      password: administrator.password,
    },
  });
  return issueTokenFor(api, administrator, { scopes });
}

/**
 * Starts the built server as an operator would, with request limits off and its log (level `info`) in a file, on the data
 * directory `dataDir` (default: an empty one), and returns `{ child, pid, port, api }`, `api` being the address with
 * /api/v1. `core` is where `startNode` starts it; `nodeOptions` go to node, `env` to the process.
 */
export async function startServer({ dataDir, core = 'server', nodeOptions = [], env = {} } = {}) {
  if (!existsSync(entryPoint)) throw new Error('dist/bin/server.js is missing: build the server first');
  const folder = temporaryFolder();
  const port = await freePort();
  const logFile = join(folder, 'server.log');
  const child = startNode([...nodeOptions, entryPoint], {
    core,
    cwd: folder,
    env: {
      PORT: String(port),
      DATA_DIR: dataDir ?? join(folder, 'data'),
      RATE_LIMIT: 'off',
      ...env,
    },
    logFile,
  });
  await untilReady(child, port, logFile);
  return { child, pid: child.pid, port, api: `http://127.0.0.1:${port}/api/v1` };
}

/**
 * Starts the built server with an organization of one person, whose personal access token has these scopes, and returns
 * where that person's record is: `{ name, pid, port, api, path, headers, person }`, the headers with the token, and who
 * signs in with what.
 */
export async function startLatchkey({ scopes, ...options } = {}) {
  const { pid, port, api } = await startServer(options);
  const { userId, token } = await issueToken(api, scopes);
  return {
    name: 'latchkey',
    pid,
    port,
    api,
    path: `/api/v1/users/${userId}`,
    headers: { authorization: `Bearer ${token}` },
    person: administrator,
  };
}
