import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../harness/processes.ts';
import { percentile } from '../harness/statistics.ts';
import { Actor, lostAnswers } from './actors.ts';
import type { Broker, BrokerClass } from './brokers.ts';
import { History, nowMs } from './history.ts';
import { creationEntries, drained, judge } from './kills.ts';
import type { Given, Outcome } from './rows.ts';
import { Service } from './service.ts';

const actorCount = 8;
/** What one request of a hundred may take: so many milliseconds, or so many times what it takes while all is well. */
const p99 = { msMax: 500, ratioMax: 5 };
const streams = ['entity-events', 'audit-events'];

/** Makes so many changes over so long; answers how long each took, and how many got no answer. */
async function changeFor(actors: readonly Actor[], { changes, seconds }: { changes: number; seconds: number }) {
  const tookMs: number[] = [];
  let withoutResponse = 0;
  const idle = [...actors];
  const waiting: ((actor: Actor) => void)[] = [];
  const nextIdle = () =>
    new Promise<Actor>((resolve) => {
      waiting.push(resolve);
    });
  const changeOnce = async (actor: Actor) => {
    const ms = await actor.act();
    if (ms === null) withoutResponse += 1;
    else tookMs.push(ms);
    const take = waiting.shift();
    if (take) take(actor);
    else idle.push(actor);
  };
  const startedMs = performance.now();
  const pending: Promise<void>[] = [];
  for (let number = 0; number < changes; number += 1) {
    const dueMs = startedMs + (number / changes) * seconds * 1_000;
    await sleep(Math.max(0, dueMs - performance.now()));
    const actor = idle.shift() ?? (await nextIdle());
    pending.push(changeOnce(actor));
  }
  await Promise.all(pending);
  return { tookMs, unanswered: withoutResponse };
}

type Trouble = 'down' | 'slow' | 'full' | 'empty';

/** What is done to the broker while changes are made; each returns what mends it. */
const troubles: Readonly<Record<Trouble, (broker: Broker) => Promise<() => Promise<void>>>> = {
  down: async (broker) => {
    await broker.stop();
    return () => broker.start();
  },
  slow: async (broker) => {
    await broker.pause();
    return async () => broker.resume();
  },
  full: (broker) => broker.narrow(streams),
  empty: async (broker) => {
    await broker.stop();
    return async () => {
      broker.empty();
      await broker.start();
    };
  },
};

const told = { down: 'is down', slow: 'stands still', full: 'is full', empty: 'comes back empty' };
/** The part of the time and of the changes that each takes. */
const shares = { down: 1, slow: 0.25, full: 0.25, empty: 0.1 };

interface Endured {
  readonly Kind: BrokerClass;
  readonly entry: string;
  readonly seconds: number;
  readonly changes: number;
}

/** Puts the service to one trouble with its broker; answers an outcome. */
async function endure(trouble: Trouble, { Kind, entry, seconds, changes }: Endured): Promise<Outcome> {
  const broker = await Kind.begin();
  const dataDir = join(temporaryFolder(), 'data');
  const service = new Service({ entry, dataDir, env: { EVENTS_URL: broker.url } });
  await service.start();
  const sentMs = nowMs();
  const token = await service.createOrganization();
  const history = new History();
  for (const one of await creationEntries(service, token, { sentMs, answeredMs: nowMs() })) history.add(one);
  const actors = Array.from(
    { length: actorCount },
    (_, number) => new Actor({ service, history, token, mayRename: number === 0 }),
  );
  const well = await changeFor(actors, { changes: 30, seconds: 1 });
  await drained(service, token);
  const mend = await troubles[trouble](broker);
  const { tookMs, unanswered: withoutResponse } = await changeFor(actors, { changes, seconds });
  const behind = Math.max(...(await service.behind(token)));
  await mend();
  const mendedMs = performance.now();
  if (trouble === 'empty') {
    for (const stream of streams) {
      await service.ask('POST', '/events/relays/replay', { token, body: { relay: `${stream}/broker`, after: 0 } });
    }
  }
  await drained(service, token);
  const drainSeconds = (performance.now() - mendedMs) / 1_000;
  const kept = await lostAnswers({ service, history, token, actors });
  const judged = await judge({ service, broker, token, history, users: kept.users });
  await service.stop();
  await broker.close();
  const p99Ms = percentile(tookMs, 0.99);
  const msMax = Math.max(p99.msMax, p99.ratioMax * percentile(well.tookMs, 0.99));
  const late = p99Ms > msMax ? [`p99 of the answers was ${Math.round(p99Ms)} ms, and may be ${Math.round(msMax)}`] : [];
  const silent = withoutResponse > 0 ? [`${withoutResponse} requests got no answer`] : [];
  const idle = behind < changes / 4 ? [`only ${behind} events were waiting: the broker had no trouble`] : [];
  return {
    ...judged,
    lost: [...kept.faults, ...history.complaints, ...judged.lost],
    unmet: [...late, ...silent, ...idle],
    done: `${changes} changes, p99 ${Math.round(p99Ms)} ms`,
    note: `${broker.name} ${told[trouble]}: ${behind} waiting in the end, sent in ${drainSeconds.toFixed(1)} s`,
  };
}

interface Options extends Given {
  readonly Kind: BrokerClass;
  readonly outageSeconds: number;
  readonly changes: number;
}

/** R2, D2: puts a service to a trouble that its broker has. */
export function outage(trouble: Trouble, { Kind, entry, outageSeconds, changes }: Options): Promise<Outcome> {
  return endure(trouble, {
    Kind,
    entry,
    seconds: Math.max(1, outageSeconds * shares[trouble]),
    changes: Math.max(40, Math.round(changes * shares[trouble])),
  });
}

/** The troubles that a broker may have, each with what the table says of it. */
export const outages = (['down', 'slow', 'full', 'empty'] as const).map((trouble) => ({
  trouble,
  what: `the broker ${told[trouble]}`,
}));
