import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../harness/command-line.ts';
import { temporaryFolder } from '../harness/processes.ts';
import { lostAnswers } from './actors.ts';
import { Load } from './failover-load.ts';
import { compareEvents, compareUsers, History, nowMs } from './history.ts';
import { creationEntries } from './kills.ts';
import { latchkey } from './operator.ts';
import { PostgresPair } from './postgres.ts';
import { type Trouble, troubles } from './postgres-troubles.ts';
import { DatabaseProxy } from './proxy.ts';
import type { Given, Outcome, SuiteRow } from './rows.ts';
import { Service } from './service.ts';
import { encryptionKey } from './stores.ts';

/** What any answer may take, and what the check of a token may; a little more than the service promises itself. */
const responseMsMax = 5_500;
const checkMsMax = 3_500;
const recoveryMsMax = 5_000;

type Nodes = readonly [Service, Service];

/** Two nodes on one store: one comes to it through the proxy, the other knows both servers. */
async function startNodes(entry: string, pair: PostgresPair, proxy: DatabaseProxy): Promise<Nodes> {
  const node = (name: string, url: string) => {
    const env = { DATABASE_URL: url, ENCRYPTION_KEY: encryptionKey };
    return new Service({ name, entry, dataDir: join(temporaryFolder(), 'data'), env });
  };
  const addresses = [pair.primary.address, pair.standby.address];
  const nodes = [node('a', pair.url(proxy.address)), node('b', pair.url(...addresses))] as const;
  for (const node of nodes) await node.start();
  return nodes;
}

/** How soon each node gave good answers again, and whether that was soon enough. */
function judgeRecovery(load: Load, mendedMs: number): number {
  const seen = load.nodes.flatMap(({ service: { name: node } }) =>
    [true, false].map((isRead) => ({ node, isRead, ms: load.firstGoodMs(mendedMs, { node, isRead }) })),
  );
  for (const { node, isRead, ms } of seen) {
    if (ms > recoveryMsMax)
      load.blame(`node ${node} ${isRead ? 'read' : 'wrote'} again only ${Math.round(ms)} ms after the store was back`);
  }
  return Math.max(...seen.map(({ ms }) => ms));
}

/** Waits until every node says that it is ready again. */
async function untilReady(nodes: Nodes, load: Load): Promise<void> {
  const untilMs = performance.now() + recoveryMsMax;
  for (const node of nodes) {
    while ((await node.health('ready')) !== 200) {
      if (performance.now() > untilMs) return load.blame(`node ${node.name} does not say that it is ready again`);
      await sleep(50);
    }
  }
}

/** Whether reads were answered well while changes could not be made. */
function judgeReads(load: Load, { begunMs, mendedMs }: { begunMs: number; mendedMs: number }): void {
  const refused = load.calls.filter(
    ({ isRead, status, sentMs }) => isRead && status === 503 && sentMs > begunMs && sentMs < mendedMs,
  );
  if (refused.length > 0) load.blame(`${refused.length} reads were refused`);
}

/** How long the slowest answers took, and whether that was too long. */
function judgeTimes(load: Load) {
  const slowest = (isRead: boolean) =>
    Math.max(0, ...load.calls.filter((call) => call.isRead === isRead).map(({ tookMs }) => Math.round(tookMs)));
  const [checkMs, changeMs] = [slowest(true), slowest(false)];
  if (checkMs > checkMsMax) load.blame(`the check of a token took ${checkMs} ms`);
  if (changeMs > responseMsMax) load.blame(`the answer to a change took ${changeMs} ms`);
  return { checkMs, changeMs };
}

/** What is looked at in the end. */
interface Judged {
  readonly load: Load;
  readonly nodes: Nodes;
  readonly history: History;
  readonly token: string;
  readonly entry: string;
}

/** What both nodes say in the end, against what was answered. */
async function judgeStore({ load, nodes, history, token, entry }: Judged) {
  const [node, other] = nodes;
  const { faults, users } = await lostAnswers({ service: node, history, token, actors: load.actors });
  const events = await node.events();
  const told = compareEvents(history.entries, events);
  const { body: otherUsers } = await other.ask('GET', '/users', { token });
  if (!isDeepStrictEqual(users, otherUsers)) faults.push('the nodes list different users');
  if (!isDeepStrictEqual(events, await other.events())) faults.push('the nodes list different events');
  faults.push(
    ...history.complaints,
    ...told.lost,
    ...told.invented,
    ...told.disordered,
    ...compareUsers(users, events),
  );
  try {
    latchkey(entry, ['audit', 'verify'], other.env);
  } catch (error) {
    faults.push(messageOf(error));
  }
  return { faults, events: events.length };
}

interface Endured {
  readonly pair: PostgresPair;
  readonly proxy: DatabaseProxy;
  readonly nodes: Nodes;
  readonly load: Load;
  readonly short: boolean;
}

/** Does it under load, so many times; answers after how many milliseconds all was well again, at most. */
async function haveTrouble({ run, times, doReadsGoOn }: Trouble, { short, ...given }: Endured): Promise<number> {
  const { load, nodes } = given;
  load.begin();
  await sleep(1_500);
  let backMs = 0;
  for (let time = 1; time <= (short ? 1 : times); time += 1) {
    load.isTrouble = true;
    const begunMs = performance.now();
    await run({ ...given, seconds: short ? 1 : 2 });
    const mendedMs = performance.now();
    load.isTrouble = false;
    if (doReadsGoOn) judgeReads(load, { begunMs, mendedMs });
    await untilReady(nodes, load);
    await sleep(short ? recoveryMsMax / 2 : recoveryMsMax);
    backMs = Math.max(backMs, judgeRecovery(load, mendedMs));
  }
  return backMs;
}

interface Options extends Given {
  readonly short?: boolean;
  /** Nothing is answered before the standby has it; as the trouble says unless given. */
  readonly isSynchronous?: boolean;
  /** Further settings of PostgreSQL. */
  readonly settings?: readonly string[];
}

/** Does something to the store of two nodes under load, so many times. */
async function endure(trouble: Trouble, { entry, tell, short = false, settings = [], ...options }: Options) {
  const isSynchronous = options.isSynchronous ?? trouble.isSynchronous ?? true;
  const disks = trouble.disks?.() ?? {};
  const pair = await PostgresPair.begin({ isSynchronous, primary: { ...disks, settings } });
  const proxy = await DatabaseProxy.begin(pair.primary.port);
  const nodes = await startNodes(entry, pair, proxy);
  const [first] = nodes;
  const sentMs = nowMs();
  const token = await first.createOrganization();
  const history = new History();
  for (const one of await creationEntries(first, token, { sentMs, answeredMs: nowMs() })) history.add(one);
  const load = new Load({ nodes, history, token });
  const backMs = await haveTrouble(trouble, { pair, proxy, nodes, load, short }).finally(() => load.stop());
  await load.end();
  const { checkMs, changeMs } = judgeTimes(load);
  const revoked = await load.judgeRevoked();
  const judged = judgeStore({ load, nodes, history, token, entry });
  // Not even the token that asks may be there any more.
  const { faults, events } = await judged.catch((error) => ({ faults: [messageOf(error)], events: 0 }));
  for (const node of nodes) await node.stop();
  await proxy.close();
  await pair.close();
  disks.disk?.unmount?.();
  disks.logDisk?.unmount?.();
  const refused = load.calls.filter(({ status }) => status === 503).length;
  const cut = proxy.cutCommits > 0 ? `, ${proxy.cutCommits} commits cut` : '';
  const all = [...load.faults, ...faults];
  tell(`${trouble.id ?? 'R3'}: ${trouble.what}: ${load.calls.length} calls, ${refused} refused, ${all.length} faults`);
  return {
    faults: all,
    events,
    done: `${history.entries.length} changes, ${revoked} revoked, ${refused} of ${load.calls.length} refused`,
    note: `slowest check ${checkMs} ms, slowest change ${changeMs} ms, good again after ${Math.round(backMs)} ms${cut}`,
  };
}

/** The rows of the failover suite. */
export const failoverRows: readonly SuiteRow[] = troubles.map((trouble) => ({
  id: trouble.id ?? 'R3',
  what: trouble.what,
  isLong: trouble.isLong ?? false,
  expected: `503 at once, back in ${recoveryMsMax / 1_000} s, nothing lost`,
  run: ({ entry, tell, short }) => endure(trouble, { entry, tell, short }),
}));

/** Does what a row of the failover suite does to any build, and any PostgreSQL. */
export function troubled(what: string, options: Options): Promise<Outcome> {
  const trouble = troubles.find((one) => one.what === what);
  if (!trouble) throw new Error(`there is no trouble "${what}"`);
  return endure(trouble, options);
}
