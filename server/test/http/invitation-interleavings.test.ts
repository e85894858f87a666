import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inviteUsers } from '../../src/features/invitations/invite-users.ts';
import { deleteUser } from '../../src/features/users/delete-user.ts';
import { tries } from '../support/effort.ts';
import {
  type Forgotten,
  forgetfulInput,
  Interleaver,
  looseTransactions,
  pickedTransactions,
} from '../support/interleaving.ts';
import { Inviting } from '../support/inviting.ts';
import { tokenIn } from '../support/mail-server.ts';
import { secondConnection } from '../support/second-connection.ts';
import type { StoreConnection } from '../support/store-connection.ts';
import type { Client, Json, TestResponse } from '../support/test-app.ts';
import { isOnPostgres } from '../support/test-store.ts';
import { faultsIn, now } from '../support/user-history.ts';

let it1: Inviting;
let second: Client;
let store: StoreConnection;
let runs = 0;

beforeAll(async () => {
  it1 = await Inviting.start();
  second = await it1.app.member(it1.admin, 'second@example.com');
  await it1.app.promote(second.userId);
  store = secondConnection(it1.app);
});
afterAll(async () => {
  store.close();
  await it1.close();
});

const addresses = [0, 1, 2, 3];
/** Users of whom one is deleted, one is active and one changes addresses when a script begins; there are no others. */
const users = [0, 1, 2];

type Command =
  | { readonly does: 'invite'; readonly to: readonly number[]; readonly isLoud: boolean }
  | { readonly does: 'delete' | 'restore'; readonly whom: number }
  | { readonly does: 'create'; readonly to: number }
  | { readonly does: 'move'; readonly whom: number; readonly to: number };

interface Script {
  readonly lanes: readonly (readonly Command[])[];
  readonly picks: readonly number[];
}

const whom = fc.constantFrom(...users);
const to = fc.constantFrom(...addresses);
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constant('invite' as const),
      to: fc.subarray(addresses, { minLength: 1 }),
      isLoud: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constantFrom('delete' as const, 'restore' as const), whom }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('create' as const), to }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('move' as const), whom, to }) },
);
const scripts: fc.Arbitrary<Script> = fc.record({
  lanes: fc.array(fc.array(command, { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 3 }),
  picks: fc.array(fc.nat({ max: 2 }), { minLength: 16, maxLength: 16 }),
});

interface Cast {
  readonly ids: readonly string[];
  readonly domain: string;
}

const allowed = {
  invite: [200, 409],
  delete: [200, 404],
  restore: [200, 409],
  create: [201, 409],
  move: [200, 404, 409],
};

function send(act: Command, client: Client, { ids, domain }: Cast): Promise<TestResponse> {
  const address = (number: number) => `${number}@${domain}`;
  const spelled = (number: number) => ` ${address(number).toUpperCase()}`;
  if (act.does === 'invite') return it1.invite(act.to.map(act.isLoud ? spelled : address), undefined, client);
  if (act.does === 'create') return client.post('/users', { fullName: 'New', email: spelled(act.to) });
  const path = `/users/${ids[act.whom]}`;
  if (act.does === 'move') return client.patch(`${path}/email`, { email: spelled(act.to) });
  return act.does === 'delete' ? client.delete(path) : client.post(`${path}/restore`);
}

/** Returns the faults of links and mails of a run: one mail and one link for each user that an invitation added. */
function invitationFaults(since: ReturnType<typeof now>, domain: string): string[] {
  const all = (sql: string): Json[] => store.prepare(sql).all(since.user);
  const links = all(
    `SELECT u.id, u.is_deleted AS gone, l.ended_at AS ended, l.delivery FROM one_time_links l
     JOIN users u ON u.id = l.user_id WHERE u.id > ?`,
  );
  const invited = all(
    `SELECT u.id FROM audit_log a JOIN users u ON u.id = a.subject_id
     WHERE u.id > ? AND a.action IN ('user.created', 'user.restored') AND a.details LIKE '%"invited":true%'`,
  );
  const mails = it1.mail.mails.filter(({ to, subject }) => subject.startsWith('You are') && to[0]?.endsWith(domain));
  const sortedIds = (rows: readonly Json[]) => rows.map(({ id }) => String(id)).sort();
  const live = links.filter(({ ended }) => ended === null);
  return [
    ...(mails.length === invited.length ? [] : [`mail: ${mails.length} for ${invited.length} invited`]),
    ...(new Set(mails.map(tokenIn)).size === mails.length ? [] : ['mail: one link in two mails']),
    ...(String(sortedIds(links)) === String(sortedIds(invited)) ? [] : ['link: not one for each time invited']),
    ...(live.some(({ gone }) => gone === 1) ? ['link: a deleted person has one that is open'] : []),
    ...(new Set(sortedIds(live)).size === live.length ? [] : ['link: somebody has two that are open']),
    ...(links.every(({ delivery }) => delivery === 'sent') ? [] : ['link: went out and has no outcome']),
  ];
}

/** Plays a script on users of its own; returns all faults. */
async function play({ lanes, picks }: Script, isLoose = false): Promise<readonly string[]> {
  const { db } = it1.app.services;
  const { transaction } = db;
  const since = now(store);
  runs += 1;
  const domain = `run-${runs}.example`;
  const ids: string[] = [];
  for (const number of users) {
    ids.push((await it1.admin.post('/users', { fullName: 'New', email: `${number}@${domain}` })).body._id);
  }
  await it1.admin.delete(`/users/${ids[0]}`);
  const faults = new Set<string>();
  const interleaver = new Interleaver();
  db.transaction = isLoose ? looseTransactions(interleaver, it1.app) : pickedTransactions(interleaver, transaction);
  const running = lanes.map((commands, lane) => async () => {
    for (const act of commands) {
      const { status } = await send(act, lane === 1 ? second : it1.admin, { ids, domain });
      if (!allowed[act.does].includes(status)) faults.add(`answer: ${act.does} is ${status}`);
    }
  });
  let moves = 0;
  const pick = (count: number) => (picks[moves++ % picks.length] ?? 0) % count;
  try {
    await interleaver.run(running, pick, () => {});
  } finally {
    db.transaction = transaction;
  }
  return [...faults, ...faultsIn(store, since), ...invitationFaults(since, domain)];
}

const picks = Array.from({ length: 16 }, (_, place) => place % 3);
const everyone: Command = { does: 'invite', to: addresses, isLoud: false };
/** Scripts that much can go wrong with. */
const telling: readonly Script[] = [
  { lanes: [[everyone], [everyone], [everyone]], picks },
  { lanes: [[everyone], [{ does: 'delete', whom: 0 }], [{ does: 'restore', whom: 0 }]], picks },
  { lanes: [[everyone], [{ does: 'create', to: 3 }], [{ does: 'move', whom: 1, to: 3 }]], picks },
  { lanes: [[everyone, { does: 'delete', whom: 0 }], [everyone], [{ does: 'restore', whom: 0 }]], picks },
];
const examples = telling.map((script): [Script] => [script]);

describe('invitations at once with others and with whatever else happens to the same people', () => {
  it('leave one account, one event and one mail a person, and no answer but the documented ones (N4, N5, STORE-1, EVENT-8, INVITE-9, LINK-3)', async () => {
    const property = fc.asyncProperty(scripts, async (script) => {
      expect(await play(script)).toEqual([]);
    });
    // Every look at the whole store takes many times as long in PostgreSQL.
    await fc.assert(property, { numRuns: tries(isOnPostgres ? 15 : 50, 10), examples });
  }, 120_000);
});

/** Plays scripts until every kind of fault was seen; answers the kinds that were not. */
async function missed(kinds: readonly string[], isLoose = false): Promise<string[]> {
  const left = new Set(kinds);
  const property = fc.asyncProperty(scripts, async (script) => {
    for (const fault of await play(script, isLoose)) left.delete(fault.split(':')[0] ?? '');
    return left.size > 0;
  });
  await fc.check(property, { numRuns: 60, endOnFailure: true, examples });
  return [...left];
}

describe('a broken twin of that is found out', () => {
  it('whose transactions are none', async () => {
    expect(await missed(['answer', 'event'], true)).toEqual([]);
  });

  it('that mails twice', async () => {
    const { mail } = it1.app.services;
    const { send, sendAll } = mail;
    mail.send = async (...given) => {
      await send(...given);
      return send(...given);
    };
    mail.sendAll = async (...given) => {
      await sendAll(...given);
      return sendAll(...given);
    };
    try {
      expect(await missed(['mail'])).toEqual([]);
    } finally {
      Object.assign(mail, { send, sendAll });
    }
  });

  const twins: readonly (readonly [string, string, typeof deleteUser, Forgotten])[] = [
    ['that invites and tells nobody', 'event', inviteUsers, ['insertInto', 'outbox']],
    ['that invites into no group', 'group', inviteUsers, ['insertInto', 'group_members']],
    ['that restores nobody and mails all the same', 'event', inviteUsers, ['updateTable', 'users']],
    ['that deletes and leaves the link', 'link', deleteUser, ['updateTable', 'one_time_links']],
    ['that keeps no link', 'link', inviteUsers, ['insertInto', 'one_time_links']],
  ];
  it.each(twins.map(([name, ...twin]) => [name, twin] as const))('%s', async (_, [kind, endpoint, forgotten]) => {
    const { handle } = endpoint;
    endpoint.handle = (services, input) => handle(services, forgetfulInput(input, forgotten));
    try {
      expect(await missed([kind])).toEqual([]);
    } finally {
      endpoint.handle = handle;
    }
  });
});
