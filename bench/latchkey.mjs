import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startNode, temporaryFolder } from './processes.mjs';

const entryPoint = fileURLToPath(new URL('../server/dist/main.js', import.meta.url));
const startSecondsMax = 30;
const administrator = { email: 'ada@example.com', password: 'Analytical-engine-1843' };

function freePort() {
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
    await sleep(50);
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

async function signIn(api) {
  const { email, password } = administrator;
  const begun = await post(`${api}/userAccount/initAuth`, { body: { email } });
  const done = await post(`${api}/userAccount/authenticate`, {
    headers: { 'x-session-token': begun.headers.get('x-session-token') },
    body: { method: 'password', credentials: { password }, email },
  });
  return done.body.accessToken;
}

/**
 * Makes an organization at `api` (the address with /api/v1), signs its administrator in and issues a personal access
 * token for `user:read`. Returns `{ userId, token }`.
 */
export async function issueToken(api) {
  await post(`${api}/org`, {
    body: {
      accountType: 'business',
      contactEmail: administrator.email,
      registeredName: 'Analytical Engines',
      adminFullName: 'Ada Lovelace',
      password: administrator.password,
    },
  });
  const session = await signIn(api);
  const issued = await post(`${api}/personal-access-tokens`, {
    headers: { authorization: `Bearer ${session}` },
    body: { name: 'bench', scopes: ['user:read'] },
  });
  const { userId } = JSON.parse(Buffer.from(session.split('.')[1], 'base64url').toString('utf8'));
  return { userId, token: issued.body.token.accessToken };
}

/**
 * Starts the built server as an operator would, on an empty data folder, with request limits off and its log (level
 * `info`) in a file, and returns where it is: `{ name, pid, port, path, headers }`, the headers with a personal access token.
 */
export async function startLatchkey() {
  if (!existsSync(entryPoint)) throw new Error('server/dist/main.js is missing: build the server first');
  const folder = temporaryFolder();
  const port = await freePort();
  const logFile = join(folder, 'server.log');
  const child = startNode([entryPoint], {
    core: 'server',
    cwd: folder,
    env: { PORT: String(port), DATA_DIR: join(folder, 'data'), RATE_LIMIT: 'off' },
    logFile,
  });
  await untilReady(child, port, logFile);
  const { userId, token } = await issueToken(`http://127.0.0.1:${port}/api/v1`);
  return {
    name: 'latchkey',
    pid: child.pid,
    port,
    path: `/api/v1/users/${userId}`,
    headers: { authorization: `Bearer ${token}` },
  };
}
