import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DeliverPolicy, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import Sqlite from 'better-sqlite3';
import { NatsServer } from '../harness/nats-server.ts';
import { temporaryFolder } from '../harness/processes.ts';
import { percentile } from '../harness/statistics.ts';
import { waitSecondsOf } from './core-wait.ts';
import { createOrganization, startServer } from './latchkey.ts';
import { pinnedTo } from './pinned.ts';
import type { Rounds } from './rows.ts';
import { type Caller, timedRequest } from './timed-request.ts';

const backlog = 20_000;
const perSecond = 200;
const stream = 'entity-events';
const lookMs = 20;
const msMax = 60_000;
/** The users that are changed in turn. */
const users = 20;

/** What P12 measured. */
export interface Relayed {
  /** Of the backlog. */
  readonly perSecond: number;
  readonly events: number;
  readonly lagMs: readonly number[];
  /** What was really changed. */
  readonly changesPerSecond: number;
  /** For which part of the time the service was ready and had no core. */
  readonly waitShare: number;
}

/** Writes events into a store that no server uses, as changes would have: that many changes would take much longer. */
function writeBacklog(dataDir: string, orgId: string): number {
  const store = new Sqlite(join(dataDir, 'latchkey.db'));
  const first = Number(store.prepare("SELECT value FROM counters WHERE name = 'event'").pluck().get()) + 1;
  const insert = store.prepare(
    'INSERT INTO outbox (sequence, id, org_id, event_type, occurred_at, payload) VALUES (?, ?, ?, ?, ?, ?)',
  );
  store.transaction(() => {
    for (let number = 0; number < backlog; number++) {
      const userId = randomBytes(12).toString('hex');
      const [email, fullName] = [`somebody-${number}@example.com`, `Some Body ${number}`];
      const payload = JSON.stringify({ orgId, userId, email, fullName, designation: 'Mathematician' });
      insert.run(first + number, randomBytes(12).toString('hex'), orgId, 'userUpdated', Date.now(), payload);
    }
    store.prepare("UPDATE counters SET value = ? WHERE name = 'event'").run(first + backlog - 1);
  })();
  store.close();
  return first + backlog - 1;
}

/** Waits until the stream holds so many messages; answers when the first and the last were stored, in milliseconds. */
async function untilStored(connection: NatsConnection, count: number): Promise<number> {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const untilMs = performance.now() + msMax;
  for (;;) {
    const state = await manager.streams.info(stream).then(
      (info) => info.state,
      () => null,
    );
    if (state && state.messages >= count) return Date.parse(state.last_ts) - Date.parse(state.first_ts);
    if (performance.now() > untilMs) throw new Error(`only ${state?.messages ?? 0} of ${count} events came to NATS`);
    await sleep(lookMs);
  }
}

/** Follows the stream as a consumer does; notes for each new event how long after its change it came, in milliseconds. */
async function follow(connection: NatsConnection) {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const consumer = await manager.jetstream().consumers.get(stream, { deliver_policy: DeliverPolicy.New });
  const incoming = await consumer.consume({ max_messages: 1_000 });
  const lagMs: number[] = [];
  const following = (async () => {
    for await (const message of incoming)
      lagMs.push(Date.now() - message.json<{ readonly timestamp: number }>().timestamp);
  })();
  return {
    lagMs,
    end: async () => {
      await incoming.close();
      await following;
    },
  };
}

async function makeUsers(caller: Caller): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let number = 0; number < users; number++) {
    const json = { fullName: `Some Body ${number}`, email: `changing-${number}@example.com` };
    const { body } = await timedRequest(caller, { method: 'POST', path: '/users', json });
    ids.push(JSON.parse(body.toString())._id);
  }
  return ids;
}

/** Changes users at a fixed rate, whether or not earlier changes are done; answers how many were made a second. */
async function changeAtRate(caller: Caller, ids: readonly string[], seconds: number): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  const startedMs = performance.now();
  const pending: Promise<unknown>[] = [];
  for (let number = 0; number < perSecond * seconds; number++) {
    await sleep(Math.max(0, startedMs + (number / perSecond) * 1_000 - performance.now()));
    const path = `/users/${ids[number % ids.length]}/designation`;
    const json = { designation: `Job ${number}` };
    pending.push(timedRequest({ ...caller, agent }, { method: 'PATCH', path, json }));
  }
  await Promise.all(pending);
  agent.destroy();
  return pending.length / ((performance.now() - startedMs) / 1_000);
}

/**
 * P12: a backlog of 20,000 events goes out to JetStream; then, at 200 changes a second, how long after its change each event
 * is at a consumer.
 */
export async function measureRelay({ seconds, tell }: Rounds): Promise<Relayed> {
  const dataDir = join(temporaryFolder(), 'data');
  const first = await startServer({ dataDir });
  const scopes = ['user:invite', 'user:read', 'user:write', 'org:read'];
  const { token } = await createOrganization(first.client, scopes);
  const headers = { authorization: `Bearer ${token}` };
  const { body } = await timedRequest({ ...first, headers, agent: new Agent() }, { path: '/org' });
  await first.program.end();
  const newest = writeBacklog(dataDir, JSON.parse(body.toString())._id);
  const nats = await NatsServer.begin({ wrap: pinnedTo('generator') });
  const server = await startServer({ dataDir, env: { EVENTS_URL: nats.url } });
  const connection = await nats.connect();
  const storedMs = await untilStored(connection, newest);
  const rate = newest / (storedMs / 1_000);
  tell(`P12: ${newest} events to JetStream in ${(storedMs / 1_000).toFixed(2)} s`);
  const caller = { ...server, headers, agent: new Agent({ keepAlive: true }) };
  const ids = await makeUsers(caller);
  await untilStored(connection, newest + users);
  const following = await follow(connection);
  const [waitedBefore, beganMs] = [waitSecondsOf(server.pid), performance.now()];
  const changesPerSecond = await changeAtRate(caller, ids, seconds);
  const waitShare =
    (Number(waitSecondsOf(server.pid)) - Number(waitedBefore)) / ((performance.now() - beganMs) / 1_000);
  await untilStored(connection, newest + users + perSecond * seconds);
  while (following.lagMs.length < perSecond * seconds) await sleep(lookMs);
  await following.end();
  await connection.close();
  await server.program.end();
  await nats.close();
  const { lagMs } = following;
  tell(`P12: lag at ${perSecond} events/s: median ${percentile(lagMs, 0.5)} ms, p99 ${percentile(lagMs, 0.99)} ms`);
  return { perSecond: rate, events: newest, lagMs, changesPerSecond, waitShare };
}
