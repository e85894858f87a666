import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../harness/processes.ts';
import { type Call, Callers, percentileMs, tally, type Wanted } from './callers.ts';
import { latchkey } from './operator.ts';
import type { Outcome, RowOptions, SuiteRow } from './rows.ts';
import { Service } from './service.ts';
import { stopUnderLoad } from './stop-under-load.ts';

const userList = 5_000;
const memoryBytesMax = 512 * 1_048_576;
const recoveryMsMax = 5_000;
/** What one answer of a hundred may take at most under overload, of those that were not turned away. */
const admittedMsMax = 4_000;
const overload = 3;

/** A service on a store of many people. */
async function startLarge({ entry, short, store }: Omit<RowOptions, 'seconds'>, wrap: readonly string[] = []) {
  const dataDir = join(temporaryFolder(), 'data');
  const users = String(short ? userList / 10 : userList);
  const { token } = latchkey(entry, ['seed', '--users', users, '--print-token'], { DATA_DIR: dataDir, ...store.env });
  const service = new Service({ entry, dataDir, wrap, env: { RATE_LIMIT: 'on', ...store.env } });
  await service.start();
  return { service, callers: new Callers({ service, token }) };
}

/** What costs a few milliseconds, and now and then something that costs little. */
const search = (count: number): Wanted =>
  count % 10 === 0 ? { path: '/org' } : { path: `/users?limit=100&sortBy=email&search=${'aeiou'[count % 5]}` };

const isAdmitted = ({ status }: Call) => status === '200';

const light = (): Wanted => ({ path: '/org' });

/** What was answered that may not be under load. */
function strange(calls: readonly Call[], expected = /^(200|201|429|503)$/): readonly string[] {
  const faults = calls.filter(({ status }) => !expected.test(status)).map(({ status }) => status);
  const silent = calls.filter(({ status, retryAfter }) => status === '503' && retryAfter === undefined);
  return [
    ...[...new Set(faults)].map((status) => `${faults.filter((one) => one === status).length} were answered ${status}`),
    ...(silent.length > 0 ? [`${silent.length} of 503 do not say when to try again`] : []),
  ];
}

/** Waits until five calls in a row are answered in good time; answers what takes too long. */
async function recovers(callers: Callers, calmMs: number): Promise<{ faults: readonly string[]; ms: number }> {
  const startedMs = performance.now();
  const good = Math.max(500, 10 * calmMs);
  for (let inRow = 0; inRow < 5; ) {
    if (performance.now() - startedMs > recoveryMsMax)
      return { faults: ['it had not recovered after 5 s'], ms: Number.NaN };
    const { status, tookMs } = await callers.call({ path: '/org' });
    inRow = status === '200' && tookMs <= good ? inRow + 1 : 0;
  }
  return { faults: [], ms: performance.now() - startedMs };
}

/** R9: three times as many requests as can be answered. */
async function overloaded({ seconds, ...options }: RowOptions): Promise<Outcome> {
  const { service, callers } = await startLarge(options);
  const { tookMs: calmMs } = await callers.call({ path: '/org' });
  const stop = callers.crowd(16, search);
  await sleep(1_000);
  callers.take();
  await sleep(seconds * 500);
  const capacity = callers.calls.length / (seconds / 2);
  await stop();
  callers.take();
  await callers.atRate(overload * capacity, seconds, search);
  const [lives, endedMs] = [await service.health('live'), performance.now()];
  await callers.settled();
  const drainedMs = performance.now() - endedMs;
  const calls = callers.take();
  const admitted = calls.filter(isAdmitted);
  const refused = calls.filter(({ status }) => status === '503');
  const { faults: late, ms } = await recovers(callers, calmMs);
  const p99Ms = percentileMs(admitted, 0.99);
  const faults = [...strange(calls), ...late];
  if (lives !== 200) faults.push(`/health/live was answered ${lives}`);
  if (refused.length === 0) faults.push('no call was turned away');
  if (p99Ms > admittedMsMax) faults.push(`p99 of those let in was ${Math.round(p99Ms)} ms`);
  if (admitted.length < (capacity * seconds) / 3) faults.push(`only ${admitted.length} were let in`);
  if (drainedMs > recoveryMsMax) faults.push(`what was asked was answered ${Math.round(drainedMs)} ms after the end`);
  callers.close();
  await service.stop();
  return {
    faults,
    done: `${Math.round(capacity)}/s fit, ${Math.round(calls.length / seconds)}/s asked: ${tally(calls)}`,
    note: `p99 of those let in ${Math.round(p99Ms)} ms; the last was answered after ${Math.round(drainedMs)} ms, all well ${Math.round(ms)} ms later`,
  };
}

/** A group of processes with little memory, by whichever version of control groups there is. */
function littleMemory() {
  const name = `latchkey-faults-${process.pid}`;
  const isOld = existsSync('/sys/fs/cgroup/memory');
  const folder = join('/sys/fs/cgroup', isOld ? 'memory' : '', name);
  mkdirSync(folder);
  const file = (old: string, now: string) => join(folder, isOld ? old : now);
  writeFileSync(file('memory.limit_in_bytes', 'memory.max'), String(memoryBytesMax));
  return {
    wrap: ['sh', '-c', `echo $$ > ${join(folder, 'cgroup.procs')} && exec "$@"`, 'sh'],
    mostBytes: () => Number(readFileSync(file('memory.max_usage_in_bytes', 'memory.peak'), 'utf8')),
    remove: () => rmdirSync(folder),
  };
}

/** What takes memory: whole lists, big bodies, passwords. */
function hungry(count: number): Wanted {
  const kinds: readonly Wanted[] = [
    { path: '/users' },
    search(count),
    { path: '/users/fetch/with-groups' },
    { method: 'POST', path: '/users/by-ids', body: { userIds: Array.from({ length: 500 }, () => 'a'.repeat(24)) } },
    { path: '/org' },
    { path: '/personal-access-tokens/admin?limit=100' },
  ];
  return kinds[count % kinds.length] ?? light();
}

/** D8: 512 MB of memory under load that takes memory. */
async function inLittleMemory({ seconds, ...options }: RowOptions): Promise<Outcome> {
  const group = littleMemory();
  try {
    const { service, callers } = await startLarge(options, group.wrap);
    const { tookMs: calmMs } = await callers.call({ path: '/org' });
    const stop = callers.crowd(48, hungry);
    await sleep(seconds * 1_000);
    await stop();
    const calls = callers.take();
    const { faults: late } = await recovers(callers, calmMs);
    const faults = [...strange(calls), ...late];
    callers.close();
    await service.stop();
    const most = Math.round(group.mostBytes() / 1_048_576);
    return { faults, done: `${tally(calls)}; at most ${most} MB` };
  } finally {
    group.remove();
  }
}

/** D8: the process stands still for ten seconds, and goes on with what has come meanwhile. */
async function standsStill(options: RowOptions): Promise<Outcome> {
  const { service, callers } = await startLarge(options);
  const stillMs = options.short ? 2_000 : 10_000;
  const { tookMs: calmMs } = await callers.call({ path: '/org' });
  const asking = callers.atRate(50, (stillMs + 2_000) / 1_000, light);
  await sleep(1_000);
  service.signal('SIGSTOP');
  await sleep(stillMs);
  service.signal('SIGCONT');
  const goesOnMs = performance.now();
  await asking;
  const { faults: late } = await recovers(callers, calmMs);
  await callers.settled();
  const answeredMs = performance.now() - goesOnMs;
  const calls = callers.take();
  // Who was just connecting has run out of time when it goes on.
  const faults = [...strange(calls, /^(200|408|503)$/), ...late];
  if (answeredMs > recoveryMsMax + 1_000) faults.push(`it took ${Math.round(answeredMs)} ms to answer all`);
  callers.close();
  await service.stop();
  return { faults, done: `${stillMs / 1_000} s, ${tally(calls)}` };
}

/** The rows of the load suite, in order. */
export const loadRows: readonly SuiteRow[] = [
  { id: 'R9', what: 'three times too much', expected: '503, p99 <= 4 s, well in 5 s', run: overloaded },
  { id: 'D8', what: '512 MB of memory', expected: 'goes on', run: inLittleMemory, isLong: true },
  { id: 'D8', what: 'stands still', expected: 'well in 5 s', run: standsStill },
  { id: 'R7', what: 'SIGTERM under load', expected: 'all answered, exit 0 in 10 s', run: stopUnderLoad },
];
