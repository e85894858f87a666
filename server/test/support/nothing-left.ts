import { setTimeout as wait } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import pg from 'pg';
import { afterAll, vi } from 'vitest';
import { mailedSecrets } from './mailed-secrets.ts';
import { hangUp } from './raw-http.ts';
import { running } from './running.ts';

/**
 * Test files share a process. A file that leaves something behind, or running, is named here: else the next file would
 * meet it.
 */
const settleMsMax = 5_000;

const statements: object = Object.getPrototypeOf(new Sqlite(':memory:').prepare('SELECT 1'));
/** Functions and objects that tests replace. */
const places: readonly (readonly [object, string])[] = [
  ...['run', 'all', 'get', 'iterate'].map((name) => [statements, name] as const),
  [Sqlite.prototype, 'prepare'],
  [pg.Client.prototype, 'query'],
  [globalThis, 'fetch'],
  [globalThis, 'setTimeout'],
  [globalThis, 'setInterval'],
  [globalThis, 'setImmediate'],
  [AbortSignal, 'timeout'],
  [performance, 'now'],
  [Date, 'now'],
];

/** Returns what keeps a process alive, by kind: sockets, servers, timers, other processes. */
function resources(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** But for its end, for which modules that stay listen once. */
const listeners = () =>
  process.eventNames().flatMap((name) => (name === 'exit' ? [] : [`${String(name)} ${process.listenerCount(name)}`]));

function state() {
  return {
    values: places.map(([owner, name]): unknown => Reflect.get(owner, name)),
    // What compresses pictures notes there where it was installed.
    environment: JSON.stringify({ ...process.env, VIPSHOME: undefined }),
    directory: process.cwd(),
    listeners: listeners(),
    resources: resources(),
  };
}

const before = state();

/** In words, what is there that was not. */
function left(): string[] {
  const now = state();
  const others = places.filter((_, place) => now.values[place] !== before.values[place]);
  const found = others.map(([, name]) => `another ${name}`);
  if (now.environment !== before.environment) found.push('another environment');
  if (now.directory !== before.directory) found.push('another directory');
  if (vi.isFakeTimers()) found.push('fake timers');
  if (running.size > 0) found.push(`${running.size} services that nobody stopped`);
  found.push(...now.listeners.filter((line) => !before.listeners.includes(line)).map((line) => `listeners of ${line}`));
  for (const [kind, count] of now.resources) {
    const more = count - (before.resources.get(kind) ?? 0);
    if (more > 0 && kind !== 'Immediate') found.push(`${more} ${kind}`);
  }
  return found;
}

mailedSecrets.clear();
afterAll(async () => {
  hangUp();
  const untilMs = performance.now() + settleMsMax;
  while (left().length > 0 && performance.now() < untilMs) await wait(20);
  const found = left();
  running.clear();
  if (found.length > 0) throw new Error(`this test file leaves behind: ${found.join(', ')}`);
}, 2 * settleMsMax);
