import { isDeepStrictEqual } from 'node:util';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { lostAnswers } from './actors.mjs';
import { Load } from './failover-load.mjs';
import { foundingEntries } from './kills.mjs';
import { compareEvents, comparePeople, Ledger, nowMs } from './ledger.mjs';
import { latchkey } from './operator.mjs';
import { PostgresPair } from './postgres.mjs';
import { temporaryFolder } from './processes.mjs';
import { Proxy } from './proxy.mjs';
import { Service } from './service.mjs';
import { encryptionKey } from './stores.mjs';

/** What any answer may take, and what the check of a token may; a little more than the service promises itself. */
const answerMsMax = 5_500;
const checkMsMax = 3_500;
const recoveryMsMax = 5_000;

async function promote(pair, proxy) {
  await pair.standby.promote();
  proxy.turnTo(pair.standby.port);
}

/**
 * What is done to the store under load. `run` answers once the store is as good as before, or one that took its place is;
 * `times` is how often it is done, and `isLong` that a short run leaves it out.
 */
const troubles = [
  {
    what: 'PostgreSQL is restarted',
    isLong: true,
    times: 2,
    run: async ({ pair }) => {
      await pair.primary.stop('fast');
      await pair.restart();
    },
  },
  {
    what: 'PostgreSQL is ended on the spot, and started',
    isLong: true,
    times: 2,
    run: async ({ pair }) => {
      await pair.primary.stop('immediate');
      await pair.restart();
    },
  },
  {
    what: 'the server ends all connections',
    isLong: true,
    times: 8,
    run: async ({ pair }) => {
      const text = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'latchkey'";
      await pair.primary.run(text);
    },
  },
  {
    what: 'the network cuts all connections',
    isLong: true,
    times: 8,
    run: async ({ proxy }) => proxy.cut(),
  },
  {
    id: 'D3',
    what: 'answers of commits are cut off',
    times: 2,
    run: async ({ proxy, seconds }) => {
      proxy.cutCommitAnswers(true);
      await sleep(seconds * 1_000);
      proxy.cutCommitAnswers(false);
    },
  },
  {
    what: 'nothing is answered, and nothing closed',
    isLong: true,
    times: 1,
    run: async ({ proxy, seconds }) => {
      proxy.hush();
      await sleep(seconds * 5_000);
      proxy.speak();
    },
  },
  {
    what: 'the standby is away',
    isLong: true,
    times: 1,
    run: async ({ pair, seconds }) => {
      await pair.standby.stop('immediate');
      await sleep(seconds * 4_000);
      await pair.standby.start();
      await pair.primary.untilFollowed();
    },
  },
  {
    what: 'the primary is killed, the standby promoted',
    times: 1,
    run: async ({ pair, proxy }) => {
      await pair.primary.kill();
      await promote(pair, proxy);
    },
  },
  {
    what: 'the same, while the standby was behind',
    isLong: true,
    times: 1,
    run: async ({ pair, proxy, seconds }) => {
      // Only what is acknowledged without the standby can be lost now.
      await pair.standby.stop('immediate');
      await sleep(seconds * 1_000);
      await pair.primary.kill();
      await pair.standby.start();
      await promote(pair, proxy);
    },
  },
];

/** Two nodes on one store: one comes to it through the proxy, the other knows both servers. */
async function startNodes({ entry, pair, proxy }) {
  const urls = { a: pair.url(proxy.address), b: pair.url(pair.primary.address, pair.standby.address) };
  const nodes = Object.entries(urls).map(([name, url]) => {
    const env = { DATABASE_URL: url, ENCRYPTION_KEY: encryptionKey };
    return Object.assign(new Service({ entry, dataDir: join(temporaryFolder(), 'data'), env }), { name });
  });
  for (const node of nodes) await node.start();
  return nodes;
}

/** How soon each node gave good answers again, and whether that was soon enough. */
function judgeRecovery(load, mendedMs) {
  const seen = load.nodes.flatMap(({ service: { name: node } }) =>
    [true, false].map((isRead) => ({ node, isRead, ms: load.firstGoodMs(mendedMs, { node, isRead }) })),
  );
  for (const { node, isRead, ms } of seen) {
    if (ms > recoveryMsMax)
      load.blame(`node ${node} ${isRead ? 'read' : 'wrote'} again only ${Math.round(ms)} ms after the store was back`);
  }
  return Math.max(...seen.map(({ ms }) => ms));
}

/** How long the slowest answers took, and whether that was too long. */
function judgeTimes(load) {
  const slowest = (isRead) =>
    Math.max(0, ...load.calls.filter((call) => call.isRead === isRead).map(({ tookMs }) => Math.round(tookMs)));
  const [checkMs, changeMs] = [slowest(true), slowest(false)];
  if (checkMs > checkMsMax) load.blame(`the check of a token took ${checkMs} ms`);
  if (changeMs > answerMsMax) load.blame(`the answer to a change took ${changeMs} ms`);
  return { checkMs, changeMs };
}

/** What both nodes say in the end, against what was answered. */
async function judgeStore({ load, nodes, ledger, token, entry }) {
  const [node, other] = nodes;
  const { faults, users } = await lostAnswers({ service: node, ledger, token, actors: load.actors });
  const events = await node.events();
  const told = compareEvents(ledger.entries, events);
  const { body: otherUsers } = await other.ask('GET', '/users', { token });
  if (!isDeepStrictEqual(users, otherUsers)) faults.push('the nodes list different users');
  if (!isDeepStrictEqual(events, await other.events())) faults.push('the nodes list different events');
  faults.push(...ledger.complaints, ...told.lost, ...told.invented, ...told.disordered, ...comparePeople(users, events));
  try {
    latchkey(entry, ['audit', 'verify'], other.env);
  } catch (error) {
    faults.push(error.message);
  }
  return { faults, events: events.length };
}

/** Does something to the store of two nodes under load, so many times; answers an outcome. */
async function endure({ trouble, entry, tell, short = false, isSynchronous }) {
  const pair = await PostgresPair.begin({ isSynchronous });
  const proxy = await Proxy.begin(pair.primary.port);
  const nodes = await startNodes({ entry, pair, proxy });
  const [first] = nodes;
  const sentMs = nowMs();
  const token = await first.found();
  const ledger = new Ledger();
  for (const one of await foundingEntries(first, token, { sentMs, answeredMs: nowMs() })) ledger.add(one);
  const load = new Load({ nodes, ledger, token });
  load.begin();
  await sleep(1_500);
  let backMs = 0;
  for (let time = 1; time <= (short ? 1 : trouble.times); time += 1) {
    load.isTrouble = true;
    await trouble.run({ pair, proxy, seconds: short ? 1 : 2 });
    const mendedMs = performance.now();
    load.isTrouble = false;
    await sleep(short ? recoveryMsMax / 2 : recoveryMsMax);
    backMs = Math.max(backMs, judgeRecovery(load, mendedMs));
  }
  await load.end();
  const { checkMs, changeMs } = judgeTimes(load);
  const revoked = await load.judgeRevoked();
  const { faults, events } = await judgeStore({ load, nodes, ledger, token, entry });
  for (const node of nodes) await node.stop();
  await proxy.close();
  await pair.close();
  const refused = load.calls.filter(({ status }) => status === 503).length;
  const cut = proxy.cutCommits > 0 ? `, ${proxy.cutCommits} commits cut` : '';
  const all = [...load.faults, ...faults];
  tell(`${trouble.id ?? 'R3'}: ${trouble.what}: ${load.calls.length} calls, ${refused} refused, ${all.length} faults`);
  return {
    faults: all,
    events,
    done: `${ledger.entries.length} changes, ${revoked} revoked, ${refused} of ${load.calls.length} refused`,
    note: `slowest check ${checkMs} ms, slowest change ${changeMs} ms, good again after ${Math.round(backMs)} ms${cut}`,
  };
}

/** The rows of the failover drill. */
export const failoverRows = troubles.map((trouble) => ({
  id: trouble.id ?? 'R3',
  what: trouble.what,
  isLong: trouble.isLong ?? false,
  expected: `503 at once, back in ${recoveryMsMax / 1_000} s, nothing lost`,
  run: (options) => endure({ trouble, ...options }),
}));

/** The primary of two nodes is killed while its standby is behind, which is promoted then: on any build and pair. */
export const failOver = (options) => endure({ trouble: troubles.at(-1), ...options });
