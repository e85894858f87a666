import { randomInt } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import type Sqlite from 'better-sqlite3';
import { messageOf } from '../harness/command-line.ts';
import { removeFolder, temporaryFolder } from '../harness/processes.ts';
import { Actor } from './actors.ts';
import { Disk, leavings } from './disk.ts';
import { inStore } from './embedded-store.ts';
import { compareEvents, compareUsers, History, nowMs, type UserRecord } from './history.ts';
import { creationEntries } from './kills.ts';
import type { Given } from './rows.ts';
import { type LoggedEvent, Service } from './service.ts';
import { type Operation, readOperations, tracedCalls } from './trace.ts';

const actorCount = 3;
/** Enough for the log of the store to be taken over into it more than once. */
const changesMax = 400;
const changesMin = 40;

/** Numbers from 0 to 1 that are the same again for the same seed, so that a cut can be repeated. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** What a service did to its files, and what it answered. */
interface Recorded {
  readonly dataDir: string;
  /** What strace wrote. */
  readonly file: string;
  readonly history: History;
  readonly token: string;
  /** When the token was answered. */
  readonly tokenMs: number;
  readonly events: readonly LoggedEvent[];
  readonly faults: readonly string[];
}

/** Runs a service under the tracer from its first start on. */
async function record(entry: string, changes: number): Promise<Recorded> {
  const folder = realpathSync(temporaryFolder());
  const [dataDir, file] = [join(folder, 'data'), join(folder, 'trace')];
  const traced = ['-s', '2000000', '-o', file, '-e', `trace=${tracedCalls}`];
  const wrap = ['strace', '-f', '--seccomp-bpf', '-ttt', '-y', '-xx', ...traced];
  const service = new Service({ entry, dataDir, wrap });
  await service.start();
  const history = new History();
  const sentMs = nowMs();
  const token = await service.createOrganization();
  const answeredMs = nowMs();
  for (const one of await creationEntries(service, token, { sentMs, answeredMs })) history.add(one);
  const actors = Array.from(
    { length: actorCount },
    (_, number) => new Actor({ service, history, token, mayRename: number === 0 }),
  );
  const working = actors.map(async (actor) => {
    for (let made = 0; made < changes / actorCount; made += 1) await actor.act();
  });
  await Promise.all(working);
  const events = await service.events();
  await service.stop();
  const { lost, invented, disordered } = compareEvents(history.entries, events);
  const faults = [...history.complaints, ...lost, ...invented, ...disordered];
  return { dataDir, file, history, token, tokenMs: answeredMs, events, faults };
}

interface Cutting {
  readonly cuts: number;
  random(): number;
}

/** Where power is cut, in order: right after answers, while the log is taken over into the store, and anywhere. */
function cutPoints(operations: readonly Operation[], history: History, { cuts, random }: Cutting) {
  const responded = history.entries.map((entry) => entry.answeredMs);
  const afterResponseSent = responded
    .map((ms) => operations.findIndex(({ atMs }) => atMs >= ms))
    .filter((at) => at > 0);
  const takenOver = operations.flatMap(({ path, kind }, at) => (kind === 'write' && path.endsWith('.db') ? [at] : []));
  const anywhere = operations.map((_, at) => at);
  const pools = [afterResponseSent, anywhere, takenOver.length > 0 ? takenOver : anywhere];
  const points = Array.from({ length: cuts }, (_, number) => {
    const pool = pools[number % pools.length] ?? anywhere;
    // The three ways to leave what was not synced take turns, whatever the place.
    const leaving = leavings[Math.floor(number / pools.length) % leavings.length] ?? 'mixed';
    return { at: pool[Math.floor(random() * pool.length)] ?? 0, leaving };
  });
  return points.sort((one, other) => one.at - other.at);
}

interface Cut {
  readonly recorded: Recorded;
  /** When it was. */
  readonly cutMs: number;
}

/** Starts a service on what a cut left, and answers what is wrong there. */
async function judgeCut(entry: string, dataDir: string, { recorded, cutMs }: Cut): Promise<readonly string[]> {
  const service = new Service({ entry, dataDir });
  try {
    await service.start();
    const events = await service.events();
    const faults: string[] = [];
    const same = recorded.events.slice(0, events.length);
    if (JSON.stringify(events) !== JSON.stringify(same)) faults.push('the events are others than before');
    for (const { event, sequence, answeredMs } of recorded.history.entries) {
      const isGone = answeredMs <= cutMs && (sequence ?? 0) > events.length;
      if (isGone) faults.push(`${event.eventType} ${sequence} was acknowledged and is gone`);
    }
    if (recorded.tokenMs <= cutMs) faults.push(...(await answersGone(service, { recorded, cutMs })));
    faults.push(...inStore(dataDir, (store) => halves(store, events), { readonly: true }));
    return faults;
  } catch (error) {
    return [messageOf(error)];
  } finally {
    await service.kill();
  }
}

async function answersGone(service: Service, { recorded: { token, history }, cutMs }: Cut): Promise<readonly string[]> {
  const tokens = [token, ...history.tokens.filter(({ answeredMs }) => answeredMs <= cutMs).map((made) => made.token)];
  const faults: string[] = [];
  for (const one of [tokens[0], tokens.at(-1)]) {
    const { status } = await service.call('GET', '/org', { token: one });
    if (status !== 200) faults.push(`a token was acknowledged and is answered ${status}`);
  }
  return faults;
}

/** What is there by halves: a user without the event, an event without the user, an organization without its groups. */
function halves(store: Sqlite.Database, events: readonly LoggedEvent[]): readonly string[] {
  const users = store
    .prepare<[], UserRecord>(
      'SELECT id AS _id, org_id AS orgId, email, full_name AS fullName, designation FROM users WHERE is_deleted = 0',
    )
    .all();
  const present = users.map((user) => ({ ...user, designation: user.designation ?? undefined }));
  const count = (sql: string) => Number(store.prepare(sql).pluck().get());
  const organizations = count('SELECT count(*) FROM organizations');
  const groups = count("SELECT count(*) FROM user_groups WHERE type IN ('admin', 'everyone', 'standard')");
  const members = count(
    "SELECT count(*) FROM group_members m JOIN user_groups g ON g.id = m.group_id WHERE g.type = 'everyone'",
  );
  const whole = store.pragma('integrity_check', { simple: true });
  return [
    ...compareUsers(present, events),
    ...(groups === 3 * organizations ? [] : [`${organizations} organizations have ${groups} groups`]),
    ...(members === users.length ? [] : [`of ${users.length} users ${members} are in everyone's group`]),
    ...(whole === 'ok' ? [] : [`the store is damaged: ${String(whole)}`]),
  ];
}

/** D5: makes the data directory again as power cuts would have left it, and starts the service on each. */
export async function cutPower({ cuts, entry, tell }: Given & { readonly cuts: number }) {
  const recorded = await record(entry, Math.min(changesMax, Math.max(changesMin, cuts * 4)));
  const operations = readOperations(recorded.file, recorded.dataDir);
  const syncs = operations.filter(({ kind }) => kind === 'sync').length;
  tell(
    `D5: ${operations.length} file operations recorded, ${syncs} of them syncs, for ${recorded.events.length} events`,
  );
  const faults = [...recorded.faults];
  const disk = new Disk(recorded.dataDir);
  const random = seeded(randomInt(2 ** 31));
  let done = 0;
  for (const [number, { at, leaving }] of cutPoints(operations, recorded.history, { cuts, random }).entries()) {
    for (const operation of operations.slice(done, at)) disk.do(operation);
    done = Math.max(done, at);
    const folder = temporaryFolder();
    const dataDir = join(folder, 'data');
    disk.leave(dataDir, leaving, random);
    const found = await judgeCut(entry, dataDir, { recorded, cutMs: operations[at]?.atMs ?? 0 });
    faults.push(...found.map((fault) => `cut ${number + 1} before operation ${at}, the rest ${leaving}: ${fault}`));
    removeFolder(folder);
    if ((number + 1) % 20 === 0) tell(`D5: ${number + 1} of ${cuts} cuts, ${faults.length} faults`);
  }
  return {
    cuts,
    operations: operations.length,
    events: recorded.events.length,
    lost: faults,
    invented: [],
    disordered: [],
  };
}
