import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Actor, lostAnswers } from './actors.ts';
import { startBroker } from './brokers.ts';
import { compareEvents, compareMessages, comparePeople, keyOf, History, nowMs } from './history.ts';
import { removeFolder, temporaryFolder } from './processes.ts';
import { founder, Service } from './service.ts';
import { stores } from './stores.ts';

const entityStream = 'entity-events';
const auditStream = 'audit-events';
const actorCount = 5;
const drainMsMax = 60_000;
const giveUpMs = 15_000;

/** Waits until something is true; throws when it takes too long. */
export async function until(what, isTrue, msMax = giveUpMs) {
  const endMs = performance.now() + msMax;
  while (!(await isTrue())) {
    if (performance.now() > endMs) throw new Error(`it took too long until ${what}`);
    await sleep(5);
  }
}

/** What the founding of the organization has to be told by. */
export async function foundingEntries(service, token, times) {
  const { body: org } = await service.ask('GET', '/org', { token });
  const { body: users } = await service.ask('GET', '/users', { token });
  const [admin] = users;
  const { accountType, registeredName, contactEmail: email, adminFullName: fullName } = founder;
  const orgId = org._id;
  const events = [
    { eventType: 'orgCreated', payload: { orgId, accountType, registeredName } },
    { eventType: 'userAdded', payload: { orgId, userId: admin._id, email, fullName, syncAction: 'none' } },
  ];
  return events.map((event) => ({ key: keyOf(event), event, ...times }));
}

/** When the service is killed; each waits for the moment and answers nothing. */
const aims = {
  /** At any moment. */
  any: async () => sleep(randomInt(5, 400)),
  /** The moment an answer is there. */
  answer: async ({ answers }) => {
    const wanted = answers() + randomInt(1, 30);
    await until('answers come', () => answers() >= wanted);
  },
  /** At any moment, and once more while the next one starts and begins to send what is waiting. */
  start: async () => sleep(randomInt(5, 400)),
  /** While the broker is down: what was committed since is not published. */
  down: async ({ broker, answers }) => {
    await broker.stop();
    const wanted = answers() + randomInt(1, 20);
    await until('answers come', () => answers() >= wanted);
  },
  /** While the broker stands still: what is on the way may be published, and is not marked. */
  still: async ({ broker, answers }) => {
    broker.pause();
    const wanted = answers() + randomInt(1, 20);
    await until('answers come', () => answers() >= wanted);
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
const aimNames = Object.keys(aims);

/** How far store and broker had got when the service was killed. */
async function lookAt(store, dataDir, broker) {
  const seen = await store.look(dataDir, `${entityStream}/broker`);
  const last = await broker.last(entityStream);
  return { ...seen, arrived: last ? JSON.parse(last.value).sequence : 0 };
}

/** Waits until everything has gone out. */
export async function drained(service, token) {
  await until(
    'everything has gone out',
    async () => {
      const relays = Object.values(await service.relays(token));
      return relays.length >= 2 && relays.every(({ behind }) => behind === 0);
    },
    drainMsMax,
  );
}

/** Compares the audit log's messages: each number once after the first arrival, in order. */
function auditFaults(messages) {
  const seen = new Set();
  const faults = [];
  for (const { value } of messages) {
    const { sequence } = JSON.parse(value);
    if (!seen.has(sequence) && sequence !== seen.size + 1)
      faults.push(`audit record ${sequence} came after ${seen.size}`);
    seen.add(sequence);
  }
  return faults;
}

/** All that is wrong in the end, and how often messages were repeated. */
export async function judge({ service, broker, token, history, users }) {
  await drained(service, token);
  const events = await service.events();
  const told = compareEvents(history.entries, events);
  const messages = await broker.messages(entityStream);
  const sent = compareMessages(messages, events);
  return {
    events: events.length,
    repeated: sent.repeated,
    lost: [...told.lost, ...sent.lost],
    invented: [...told.invented, ...sent.invented, ...comparePeople(users, events)],
    disordered: [...told.disordered, ...sent.disordered, ...auditFaults(await broker.messages(auditStream))],
  };
}

/**
 * R1, D1: a service with a broker is killed under mixed load, again and again, at any moment and at those that matter, and
 * started on what it left. Answers an outcome.
 */
export async function killUnderLoad({ Kind, kills, entry, tell, stopEarly = false, store: name = 'sqlite' }) {
  const broker = await startBroker(Kind);
  const store = await stores[name]();
  const dataDir = join(temporaryFolder(), 'data');
  const service = new Service({ entry, dataDir, env: { EVENTS_URL: broker.url, ...store.env } });
  await service.start();
  const foundedMs = nowMs();
  const token = await service.found();
  const history = new History();
  for (const one of await foundingEntries(service, token, { sentMs: foundedMs, answeredMs: nowMs() })) history.add(one);
  const actors = Array.from(
    { length: actorCount },
    (_, number) => new Actor({ service, history, token, mayRename: number === 0 }),
  );
  const faults = [];
  const met = { unpublished: 0, unmarked: 0 };
  let answers = 0;
  let users = [];
  for (let kill = 1; kill <= kills; kill += 1) {
    const aim = aimNames[kill % aimNames.length];
    let isOver = false;
    const working = actors.map(async (actor) => {
      while (!isOver && (await actor.act()) !== null) answers += 1;
    });
    await aims[aim]({
      broker,
      answers: () => answers,
      kill: () => service.signal('SIGKILL'),
      heldMs: store.heldMs,
    });
    await service.kill();
    isOver = true;
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
    const { committed, marked, arrived } = await lookAt(store, dataDir, broker);
    if (committed > arrived) met.unpublished += 1;
    if (arrived > marked) met.unmarked += 1;
    if (marked > arrived)
      faults.push(`kill ${kill} (${aim}): events up to ${marked} are marked, and up to ${arrived} have arrived`);
    await service.start();
    for (const actor of actors) await actor.settle();
    const kept = await lostAnswers({ service, history, token, actors });
    users = kept.users;
    faults.push(...kept.faults.map((fault) => `kill ${kill} (${aim}): ${fault}`));
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

/** R1: a service is killed while it founds the organization: there is a whole one afterwards, or none. */
export async function killFounding({ kills, entry, tell }) {
  const faults = [];
  let founded = 0;
  for (let kill = 1; kill <= kills; kill += 1) {
    const folder = temporaryFolder();
    const service = new Service({ entry, dataDir: join(folder, 'data') });
    await service.start();
    const answer = service.call('POST', '/org', { body: founder }).catch(() => null);
    await sleep(randomInt(20, 300));
    await service.kill();
    const wasAnswered = (await answer)?.status === 200;
    await service.start();
    const { body } = await service.ask('GET', '/org/exists');
    if (wasAnswered && !body.exists) faults.push(`kill ${kill}: an organization is gone`);
    if (body.exists) founded += 1;
    else await service.ask('POST', '/org', { body: founder });
    faults.push(...(await wholeOrganization(service)).map((fault) => `kill ${kill}: ${fault}`));
    await service.kill();
    removeFolder(folder);
  }
  tell(`R1: killed ${kills} times while founding, ${founded} organizations were there`);
  return { kills, founded, events: 2 * kills, lost: faults, invented: [], disordered: [] };
}

async function wholeOrganization(service) {
  try {
    const token = await service.signIn();
    const times = { sentMs: 0, answeredMs: Infinity };
    const { lost, invented, disordered } = compareEvents(
      await foundingEntries(service, token, times),
      await service.events(),
    );
    const { body: groups } = await service.ask('GET', '/userGroups', { token });
    const { totalCount } = groups.pagination;
    return [...lost, ...invented, ...disordered, ...(totalCount === 3 ? [] : [`there are ${totalCount} groups`])];
  } catch (error) {
    return [`the organization is half made: ${error.message}`];
  }
}
