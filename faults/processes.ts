import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const graceMs = 15_000;
const running = new Set();
const folders = new Set();
const unmounts = new Set();
process.once('exit', () => {
  for (const child of running) signal(child, 'SIGKILL');
});

/** A new folder below the system's temporary one, removed by `endEverything`. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-faults-'));
  folders.add(folder);
  return folder;
}

/** Removes a folder that was made here before everything ends. */
export function removeFolder(folder) {
  folders.delete(folder);
  rmSync(folder, { recursive: true, force: true });
}

/** Has a mounted file system given up at the end; answers what gives it up before. */
export function toUnmount(unmount) {
  const now = () => {
    if (unmounts.delete(now)) unmount();
  };
  unmounts.add(now);
  return now;
}

/** A port of the loopback interface at which nothing listens right now. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

/**
 * Starts a program, in a process group of its own, with `env` and nothing of the caller's environment but PATH and HOME. What
 * it says is kept, the last of it: `child.said()`. `child.ended` resolves to `{ code, signal }`.
 */
export function start(command, args, { env = {}, cwd }) {
  const child = spawn(command, args, {
    cwd,
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      said = (said + text).slice(-20_000);
    });
  }
  child.said = () => said;
  running.add(child);
  child.ended = new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: null, signal: null, error }));
    child.once('close', (code, ended) => resolve({ code, signal: ended }));
  }).finally(() => running.delete(child));
  return child;
}

/** Sends a signal to a process that was started here and to what it started; nothing where it has ended. */
export function signal(child, name) {
  if (!running.has(child) || child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** Ends a process by a signal; one that does not end within the time it may take is killed. */
export async function end(child, name = 'SIGTERM') {
  signal(child, name);
  // A stopped process hears nothing else.
  signal(child, 'SIGCONT');
  const timer = setTimeout(() => signal(child, 'SIGKILL'), graceMs);
  const ended = await child.ended;
  clearTimeout(timer);
  return ended;
}

/** Ends every process that was started here and is still running, then unmounts what is mounted and removes the temporary folders. */
export async function endEverything() {
  await Promise.all([...running].map((child) => end(child, 'SIGKILL')));
  for (const unmount of unmounts) unmount();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  folders.clear();
}
