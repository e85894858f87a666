import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DeliverPolicy, jetstreamManager } from '@nats-io/jetstream';
import Sqlite from 'better-sqlite3';
import { waitSecondsOf } from './core-wait.ts';
import { issueToken, startServer } from './latchkey.ts';
import { startNats } from './nats-server.ts';
import { end, temporaryFolder } from './pinned.ts';
import { percentile } from '../harness/statistics.ts';
import { timedRequest } from './timed-request.ts';

const backlog = 20_000;
const perSecond = 200;
const stream = 'entity-events';
const lookMs = 20;
const msMax = 60_000;
/** The users that are changed in turn. */
const people = 20;

/** Writes events into a store that no server uses, as changes would have: that many changes would take much longer. */
function writeBacklog(dataDir, orgId) {
  const store = new Sqlite(join(dataDir, 'latchkey.db'));
  const first = store.prepare("SELECT value FROM counters WHERE name = 'event'").pluck().get() + 1;
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
async function untilStored(connection, count) {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const untilMs = performance.now() + msMax;
  for (;;) {
    const state = await manager.streams.info(stream).then(
      (info) => info.state,
      () => ({ messages: 0 }),
    );
    if (state.messages >= count) return Date.parse(state.last_ts) - Date.parse(state.first_ts);
    if (performance.now() > untilMs) throw new Error(`only ${state.messages} of ${count} events came to NATS`);
    await sleep(lookMs);
  }
}

/** Follows the stream as a consumer does; notes for each new event how long after its change it came, in milliseconds. */
async function follow(connection) {
  const manager = await jetstreamManager(connection, { checkAPI: false });
  const consumer = await manager.jetstream().consumers.get(stream, { deliver_policy: DeliverPolicy.New });
  const incoming = await consumer.consume({ max_messages: 1_000 });
  const lagMs = [];
  const following = (async () => {
    for await (const message of incoming) lagMs.push(Date.now() - message.json().timestamp);
  })();
  return {
    lagMs,
    end: async () => {
      await incoming.close();
      await following;
    },
  };
}

async function makePeople(caller) {
  const ids = [];
  for (let number = 0; number < people; number++) {
    const json = { fullName: `Some Body ${number}`, email: `changing-${number}@example.com` };
    const { body } = await timedRequest(caller, { method: 'POST', path: '/users', json });
    ids.push(JSON.parse(body)._id);
  }
  return ids;
}

/** Changes users at a fixed rate, whether or not earlier changes are done; answers how many were made a second. */
async function changeAtRate(caller, ids, seconds) {
  const agent = new Agent({ keepAlive: true });
  const startedMs = performance.now();
  const pending = [];
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
 * is at a consumer. Returns `{ perSecond, lagMs, changesPerSecond, waitShare }`: the lags in ascending order, what was really
 * changed a second, and for which part of the time the service had no core.
 */
export async function measureRelay({ seconds, tell }) {
  const dataDir = join(temporaryFolder(), 'data');
  const first = await startServer({ dataDir });
  const scopes = ['user:invite', 'user:read', 'user:write', 'org:read'];
  const { token } = await issueToken(first.api, scopes);
  const headers = { authorization: `Bearer ${token}` };
  const { body } = await timedRequest({ ...first, headers, agent: new Agent() }, { path: '/org' });
  await end(first.child);
  const newest = writeBacklog(dataDir, JSON.parse(body)._id);
  const nats = await startNats();
  const server = await startServer({ dataDir, env: { EVENTS_URL: nats.url } });
  const connection = await nats.connect();
  const storedMs = await untilStored(connection, newest);
  const rate = newest / (storedMs / 1_000);
  tell(`P12: ${newest} events to JetStream in ${(storedMs / 1_000).toFixed(2)} s`);
  const caller = { ...server, headers, agent: new Agent({ keepAlive: true }) };
  const ids = await makePeople(caller);
  await untilStored(connection, newest + people);
  const following = await follow(connection);
  const [waitedBefore, beganMs] = [waitSecondsOf(server.pid), performance.now()];
  const changesPerSecond = await changeAtRate(caller, ids, seconds);
  const waitShare = (waitSecondsOf(server.pid) - waitedBefore) / ((performance.now() - beganMs) / 1_000);
  await untilStored(connection, newest + people + perSecond * seconds);
  while (following.lagMs.length < perSecond * seconds) await sleep(lookMs);
  await following.end();
  await connection.close();
  await end(server.child);
  await nats.end();
  const lagMs = following.lagMs.sort((one, other) => one - other);
  tell(`P12: lag at ${perSecond} events/s: median ${percentile(lagMs, 0.5)} ms, p99 ${percentile(lagMs, 0.99)} ms`);
  return { perSecond: rate, events: newest, lagMs, changesPerSecond, waitShare };
}
