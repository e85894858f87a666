import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { organization } from '../harness/api-client.ts';
import { temporaryFolder } from '../harness/processes.ts';
import { until } from '../harness/waiting.ts';
import { Actor, lostAnswers } from './actors.ts';
import type { Broker, BrokerClass, Message } from './brokers.ts';
import {
  compareEvents,
  compareMessages,
  compareUsers,
  type Entry,
  History,
  keyOf,
  nowMs,
  type Times,
  type UserRecord,
} from './history.ts';
import type { Given } from './rows.ts';
import { Service } from './service.ts';
import { type Store, type StoreName, stores } from './stores.ts';

const entityStream = 'entity-events';
const auditStream = 'audit-events';
const actorCount = 5;
const drainMsMax = 60_000;
const giveUpMs = 15_000;

/** The events that the creation of the organization has to have. */
export async function creationEntries(service: Service, token: string, times: Times): Promise<readonly Entry[]> {
  const { body: org } = await service.ask('GET', '/org', { token });
  const { body: users } = await service.ask('GET', '/users', { token });
  const [admin] = users;
  const { accountType, registeredName, contactEmail: email, adminFullName: fullName } = organization;
  const orgId = org._id;
  const events = [
    { eventType: 'orgCreated', payload: { orgId, accountType, registeredName } },
    { eventType: 'userAdded', payload: { orgId, userId: admin._id, email, fullName, syncAction: 'none' } },
  ];
  return events.map((event) => ({ key: keyOf(event), event, ...times }));
}

/** What an aim may look at, and how it kills. */
interface Aimed {
  readonly broker: Broker;
  /** How many answers came so far. */
  answers(): number;
  kill(): void;
  readonly heldMs: number;
}

type Aim = 'any' | 'answer' | 'start' | 'down' | 'still' | 'arrival';

/** When the service is killed: each waits for the moment. */
const aims: Readonly<Record<Aim, (given: Aimed) => Promise<void>>> = {
  /** At any moment. */
  any: () => sleep(randomInt(5, 400)),
  /** The moment an answer is there. */
  answer: async ({ answers: responses }) => {
    const wanted = responses() + randomInt(1, 30);
    await until('answers come', () => responses() >= wanted);
  },
  /** At any moment, and once more while the next one starts and begins to send what is waiting. */
  start: () => sleep(randomInt(5, 400)),
  /** While the broker is down: what was committed since is not published. */
  down: async ({ broker, answers: responses }) => {
    await broker.stop();
    const wanted = responses() + randomInt(1, 20);
    await until('answers come', () => responses() >= wanted);
  },
  /** While the broker stands still: what is on the way may be published, and is not marked. */
  still: async ({ broker, answers: responses }) => {
    await broker.pause();
    const wanted = responses() + randomInt(1, 20);
    await until('answers come', () => responses() >= wanted);
    await sleep(randomInt(60));
  },
  /** The moment an event arrives at the broker, before its arrival is marked. */
  arrival: async ({ broker, kill, heldMs }) => {
    const wanted = randomInt(1, 25);
    let hasArrived = false;
    const stop = await broker.watch(entityStream, (count) => {
      if (count < wanted || hasArrived) return;
      hasArrived = true;
      kill();
    });
    await until('events arrive', () => hasArrived, giveUpMs + heldMs);
    await stop();
  },
};
const aimNames: readonly Aim[] = ['any', 'answer', 'start', 'down', 'still', 'arrival'];

/** How far store and broker had got when the service was killed. */
async function progressOf(store: Store, dataDir: string, broker: Broker) {
  const seen = await store.progress(dataDir, `${entityStream}/broker`);
  const last = await broker.last(entityStream);
  return { ...seen, arrived: last === null ? 0 : Number(JSON.parse(last).sequence) };
}

/** Waits until everything has gone out. */
export async function drained(service: Service, token: string): Promise<void> {
  await until(
    'everything has gone out',
    async () => {
      const behind = await service.behind(token);
      return behind.length >= 2 && behind.every((count) => count === 0);
    },
    drainMsMax,
  );
}

/** Compares the audit log's messages: each number once after the first arrival, in order. */
function auditFaults(messages: readonly Message[]): readonly string[] {
  const seen = new Set<number>();
  const faults: string[] = [];
  for (const { value } of messages) {
    const { sequence } = JSON.parse(value);
    if (!seen.has(sequence) && sequence !== seen.size + 1)
      faults.push(`audit record ${sequence} came after ${seen.size}`);
    seen.add(sequence);
  }
  return faults;
}

interface Judged {
  readonly service: Service;
  readonly broker: Broker;
  readonly token: string;
  readonly history: History;
  readonly users: readonly UserRecord[];
}

/** All that is wrong in the end, and how often messages were repeated. */
export async function judge({ service, broker, token, history, users }: Judged) {
  await drained(service, token);
  const events = await service.events();
  const told = compareEvents(history.entries, events);
  const messages = await broker.stored(entityStream);
  const sent = compareMessages(messages, events);
  return {
    events: events.length,
    repeated: sent.repeated,
    lost: [...told.lost, ...sent.lost],
    invented: [...told.invented, ...sent.invented, ...compareUsers(users, events)],
    disordered: [...told.disordered, ...sent.disordered, ...auditFaults(await broker.stored(auditStream))],
  };
}

/** How often a service is killed. */
export interface Kills extends Given {
  readonly kills: number;
}

interface Load extends Kills {
  readonly Kind: BrokerClass;
  /** Ends with the first fault. */
  readonly stopEarly?: boolean;
  readonly store?: StoreName;
}

/** A service with a broker, and the clients that change things. */
interface Running {
  readonly service: Service;
  readonly broker: Broker;
  readonly store: Store;
  readonly token: string;
  readonly history: History;
  readonly actors: readonly Actor[];
}

async function begin({ Kind, entry, store: name = 'sqlite' }: Load): Promise<Running> {
  const broker = await Kind.begin();
  const store = await stores[name]();
  const dataDir = join(temporaryFolder(), 'data');
  const service = new Service({ entry, dataDir, env: { EVENTS_URL: broker.url, ...store.env } });
  await service.start();
  const sentMs = nowMs();
  const token = await service.createOrganization();
  const history = new History();
  for (const one of await creationEntries(service, token, { sentMs, answeredMs: nowMs() })) history.add(one);
  const actors = Array.from(
    { length: actorCount },
    (_, number) => new Actor({ service, history, token, mayRename: number === 0 }),
  );
  return { service, broker, store, token, history, actors };
}

/** Kills the service once under load, at the moment that is aimed at, and makes the broker as good as before. */
async function killOnce({ service, broker, store, actors }: Running, aim: Aim): Promise<void> {
  const over = new AbortController();
  let responses = 0;
  const working = actors.map(async (actor) => {
    while (!over.signal.aborted && (await actor.act()) !== null) responses += 1;
  });
  const kill = () => service.signal('SIGKILL');
  await aims[aim]({ broker, answers: () => responses, kill, heldMs: store.heldMs });
  await service.kill();
  over.abort();
  await Promise.all(working);
  if (aim === 'down') await broker.start();
  if (aim === 'still') {
    broker.resume();
    await sleep(50);
  }
  if (aim === 'start') {
    service.spawn();
    await sleep(randomInt(300, 1_500));
    await service.kill();
  }
}

/**
 * R1, D1: a service with a broker is killed under mixed load, again and again, at any moment and at those that matter, and
 * started on what it left.
 */
export async function killUnderLoad({ kills, tell, stopEarly = false, ...given }: Load) {
  const running = await begin({ kills, tell, ...given });
  const { service, broker, store, token, history, actors } = running;
  const faults: string[] = [];
  const met = { unpublished: 0, unmarked: 0 };
  let users: readonly UserRecord[] = [];
  for (let kill = 1; kill <= kills; kill += 1) {
    const aim = aimNames[kill % aimNames.length] ?? 'any';
    await killOnce(running, aim);
    const { committed, marked, arrived } = await progressOf(store, service.dataDir, broker);
    if (committed > arrived) met.unpublished += 1;
    if (arrived > marked) met.unmarked += 1;
    const early = marked > arrived ? [`events up to ${marked} are marked, and up to ${arrived} have arrived`] : [];
    await service.start();
    for (const actor of actors) await actor.settle();
    const kept = await lostAnswers({ service, history, token, actors });
    users = kept.users;
    faults.push(...[...early, ...kept.faults].map((fault) => `kill ${kill} (${aim}): ${fault}`));
    if (kill % 20 === 0)
      tell(`R1: ${broker.name}, ${kill} of ${kills} kills, ${history.entries.length} changes, ${faults.length} faults`);
    if (stopEarly && faults.length > 0) break;
  }
  const judged = await judge({ service, broker, token, history, users });
  await service.stop();
  await broker.close();
  await store.close();
  return {
    kills,
    changes: history.entries.length,
    ...met,
    ...judged,
    lost: [...faults, ...history.complaints, ...judged.lost],
  };
}
