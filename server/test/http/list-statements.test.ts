import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { appendAudit } from '../../src/audit-log/audit-log.ts';
import { hashCredential } from '../../src/base/secret.ts';
import { addManyUsers } from '../support/many-users.ts';
import { secondConnection } from '../support/second-connection.ts';
import { registerService } from '../support/service-clients.ts';
import { watchStatements } from '../support/statement-watch.ts';
import { planOf } from '../support/store-plans.ts';
import { unserved } from '../support/stored-relays.ts';
import { type Client, TestApp } from '../support/test-app.ts';
import { registerWebhook } from '../support/webhooks.ts';

const statementsMax = 3;
const few = 10;
const many = 2_000;

/**
 * Statements of every request: data version, credential, whether the organization of a service is deleted, and last use
 * of a token.
 */
const verification =
  /data_version|where "?[st]"?\."?hash|^select "id" from "organizations" where "is_deleted" = \S+$|"last_used_at" = |^(begin|commit)/i;

interface List {
  readonly name: string;
  call(groupIds: string, userIds: readonly string[]): { path: string; body?: unknown };
}

const paged = ['page=1', 'page=3&limit=3', 'search=user', 'search=%25_%5C', 'sortBy=email', 'sortBy=createdAt'].concat([
  'sortOrder=desc',
  'hasLoggedIn=true',
  'hasLoggedIn=false',
  'page=1000000',
]);

const invitations = ['', '?page=2&limit=100', '?search=user', '?status=pending', '?status=failed&search=%25_'];
const tokens = ['', '?page=2&limit=100', '?search=user', '?status=all', '?status=revoked'];

/** Of the webhook whose attempts are listed. */
let webhookId = '';

const lists: readonly List[] = [
  { name: 'GET /users', call: () => ({ path: '/users' }) },
  ...paged.map((query) => ({ name: `GET /users?${query}`, call: () => ({ path: `/users?${query}` }) })),
  { name: 'GET /users?groupIds', call: (groupIds) => ({ path: `/users?groupIds=${groupIds}` }) },
  {
    name: 'GET /users with every filter',
    call: (groupIds) => {
      const sorted = 'sortBy=createdAt&sortOrder=desc&limit=100';
      return { path: `/users?search=u&hasLoggedIn=false&groupIds=${groupIds}&${sorted}` };
    },
  },
  { name: 'GET /users/fetch/with-groups', call: () => ({ path: '/users/fetch/with-groups' }) },
  {
    name: 'POST /users/by-ids',
    // One query for each 500 ids sent, however many users there are.
    call: (_, userIds) => ({ path: '/users/by-ids', body: { userIds: userIds.slice(0, 500) } }),
  },
  { name: 'GET /users/email/exists', call: () => ({ path: '/users/email/exists?email=ada@example.com' }) },
  { name: 'GET /personal-access-tokens', call: () => ({ path: '/personal-access-tokens' }) },
  ...tokens.map((query) => {
    const path = `/personal-access-tokens/admin${query}`;
    return { name: `GET ${path}`, call: () => ({ path }) };
  }),
  { name: 'GET /service-clients', call: () => ({ path: '/service-clients' }) },
  { name: 'GET /userAccount/sessions', call: () => ({ path: '/userAccount/sessions' }) },
  ...['', '?after=5', '?limit=1000'].map((query) => ({
    name: `GET /events${query}`,
    call: () => ({ path: `/events${query}` }),
  })),
  ...['', `?relay=${encodeURIComponent(unserved)}`, '?page=2&limit=5'].map((query) => ({
    name: `GET /events/dead-letters${query}`,
    call: () => ({ path: `/events/dead-letters${query}` }),
  })),
  ...['', '?limit=200', '?action=session.&outcome=success&from=2000-01-01', '?cursor=9999999999999.5'].map((query) => ({
    name: `GET /audit${query}`,
    call: () => ({ path: `/audit${query}` }),
  })),
  { name: 'GET /webhooks', call: () => ({ path: '/webhooks' }) },
  { name: 'GET /webhooks/:webhookId/attempts', call: () => ({ path: `/webhooks/${webhookId}/attempts` }) },
  ...invitations.map((query) => {
    const path = `/users/invitations${query}`;
    return { name: `GET ${path}`, call: () => ({ path }) };
  }),
];

describe('statements of the list routes (STORE-14)', () => {
  let app: TestApp;
  let admin: Client;
  const counted = new Map<string, { few: string[]; many: string[] }>();

  async function addTokens(count: number): Promise<void> {
    const { db, newId } = app.services;
    const row = await db.read.selectFrom('personal_access_tokens').selectAll().limit(1).executeTakeFirstOrThrow();
    await db.transaction(async (tx) => {
      for (let made = 0; made < count; made += 1) {
        const hash = hashCredential(randomBytes(32).toString('hex'));
        await tx
          .insertInto('personal_access_tokens')
          .values({ ...row, id: newId(), hash })
          .execute();
      }
    });
  }

  /** Copies the one service client, and the administrator's session with its tokens. */
  async function addClientsAndSessions(count: number): Promise<void> {
    const { db, newId } = app.services;
    const client = await db.read.selectFrom('service_clients').selectAll().limit(1).executeTakeFirstOrThrow();
    const session = await db.read.selectFrom('sessions').selectAll().limit(1).executeTakeFirstOrThrow();
    const of = db.read.selectFrom('session_tokens').where('session_id', '=', session.id);
    const tokens = await of.selectAll().execute();
    await db.transaction(async (tx) => {
      for (let made = 0; made < count; made += 1) {
        const [id, hash] = [newId(), () => hashCredential(randomBytes(32).toString('hex'))];
        await tx
          .insertInto('service_clients')
          .values({ ...client, id })
          .execute();
        await tx
          .insertInto('sessions')
          .values({ ...session, id })
          .execute();
        const copies = tokens.map((token) => ({ ...token, session_id: id, hash: hash() }));
        await tx.insertInto('session_tokens').values(copies).execute();
      }
    });
  }

  /** Copies the one webhook, which is off, and gives it attempts. */
  async function addWebhooks(count: number): Promise<void> {
    const { db, newId } = app.services;
    const webhook = await db.read
      .selectFrom('webhooks')
      .selectAll()
      .where('id', '=', webhookId)
      .executeTakeFirstOrThrow();
    const event = {
      event_id: newId(),
      event_type: 'userAdded',
      sequence: 1,
      duration_ms: 1,
      status: 204,
      reason: null,
    };
    await db.transaction(async (tx) => {
      for (let made = 1; made <= count; made += 1) {
        await tx
          .insertInto('webhooks')
          .values({ ...webhook, id: newId() })
          .execute();
        const attempt = { id: newId(), webhook_id: webhookId, attempt: made, attempted_at: app.clock.now(), ...event };
        await tx.insertInto('webhook_attempts').values(attempt).execute();
      }
    });
  }

  /** Adds records to the audit log. */
  async function addRecords(count: number): Promise<void> {
    const { db } = app.services;
    const origin = { requestId: 'many', network: '127.0.0.1' };
    const record = { action: 'session.refreshed', orgId: null, actor: null, subjectId: null, origin } as const;
    const records = Array.from({ length: count }, () => record);
    await db.transaction((tx) => appendAudit(tx, app.services, ...records));
  }

  /** Adds events, and sets as many of them aside. */
  async function addEventsAndDeadLetters(count: number): Promise<void> {
    const { db, newId } = app.services;
    const { org_id, ...last } = (await app.events()).at(-1);
    const row = { org_id, event_type: 'userAdded', occurred_at: app.clock.now(), payload: '{}' };
    const letter = { relay: unserved, attempts: 5, last_error: 'x', created_at: app.clock.now(), requeued_at: null };
    await db.transaction(async (tx) => {
      for (let sequence = last.sequence + 1; sequence <= last.sequence + count; sequence += 1) {
        await tx
          .insertInto('outbox')
          .values({ ...row, id: newId(), sequence })
          .execute();
        await tx
          .insertInto('dead_letters')
          .values({ ...letter, id: newId(), sequence })
          .execute();
      }
      const value = last.sequence + count;
      await tx.updateTable('counters').set({ value }).where('name', '=', 'event').execute();
    });
  }

  /** Invites all users who were not yet: a row in the store, as after a mail that leads to the sign-in page. */
  async function inviteAll(): Promise<void> {
    const { db, newId } = app.services;
    const invited = db.read.selectFrom('one_time_links').select('user_id');
    const users = await db.read.selectFrom('users').where('id', 'not in', invited).select(['id', 'org_id']).execute();
    await db.transaction(async (tx) => {
      for (const { id: user_id, org_id } of users) {
        const state = { purpose: 'invitation', is_returning: 0, delivery: 'sent', is_current: 1 } as const;
        const row = { id: newId(), org_id, user_id, created_at: app.clock.now(), ...state };
        await tx.insertInto('one_time_links').values(row).execute();
      }
    });
  }

  async function statementsOf({ call }: List): Promise<string[]> {
    const { db } = app.services;
    const groups = await db.read.selectFrom('user_groups').select('id').execute();
    const users = await db.read.selectFrom('users').select('id').execute();
    const { path, body } = call(
      groups.map(({ id }) => id).join(','),
      users.map(({ id }) => id),
    );
    const client = path.includes('email/exists') ? app.service() : admin;
    const statements: string[] = [];
    const stop = watchStatements((sql) => void statements.push(sql));
    try {
      const { status } = body === undefined ? await client.get(path) : await client.post(path, body);
      expect(status).toBe(200);
    } finally {
      stop();
    }
    return statements.filter((sql) => !verification.test(sql));
  }

  async function countAll(size: 'few' | 'many'): Promise<void> {
    for (const list of lists) {
      const statements = await statementsOf(list);
      counted.set(list.name, { ...(counted.get(list.name) ?? { few: [], many: [] }), [size]: statements });
    }
  }

  beforeAll(async () => {
    app = await TestApp.start();
    // Whatever is asked of the store from here on, a request asks it.
    await app.services.relays.close();
    admin = await app.setUp();
    await admin.token();
    await registerService(admin);
    await addManyUsers(app, few - 1);
    await addTokens(few - 1);
    await addClientsAndSessions(few - 1);
    webhookId = (await registerWebhook(admin, 'https://example.com/')).id;
    await admin.patch(`/webhooks/${webhookId}`, { enabled: false });
    await addWebhooks(few - 1);
    await addEventsAndDeadLetters(few);
    await addRecords(few);
    await inviteAll();
    // The first long list opens a connection, which later ones use.
    await admin.get('/users');
    await countAll('few');
    await addManyUsers(app, many - few);
    await addTokens(many - few);
    await addClientsAndSessions(many - few);
    await addWebhooks(many - few);
    await addEventsAndDeadLetters(many - few);
    await addRecords(many - few);
    await inviteAll();
    await countAll('many');
  });
  afterAll(() => app.close());

  it.each(lists.map(({ name }) => name))('%s: as many with 10 rows as with 2,000, and at most 3', (name) => {
    const { few: before, many: after } = counted.get(name) ?? { few: [], many: [] };
    expect(after.length).toBe(before.length);
    expect(before.length).toBeGreaterThan(0);
    expect(before.length).toBeLessThanOrEqual(statementsMax);
  });

  it('the statements themselves are the same, but for the ids that by-ids asks for', () => {
    for (const [name, { few: before, many: after }] of counted) {
      const withoutIds = (sql: string) => sql.replace(/(\?, )+\?/, '?');
      expect([name, after.map(withoutIds)]).toEqual([name, before.map(withoutIds)]);
    }
  });

  it.each(['', '&search=u&hasLoggedIn=false&sortBy=createdAt&sortOrder=desc&limit=100'])(
    '100 groupIds are looked up once, not for each user (USER-18): groupIds=…%s',
    async (more) => {
      const groupIds = Array.from({ length: 100 }, () => app.services.newId()).join(',');
      const statements = await statementsOf({ name: '', call: () => ({ path: `/users?groupIds=${groupIds}${more}` }) });
      expect(statements).toHaveLength(2);
      const store = secondConnection(app);
      for (const sql of statements) {
        const { text, scans } = planOf(store, sql);
        expect(text.match(/^SEARCH m |^.* Scan group_members m .*$/gm)).toHaveLength(1);
        expect([text.match(/CORRELATED/), scans.filter((step) => / m\b/.test(step))]).toEqual([null, []]);
      }
      store.close();
    },
  );

  it('what is counted is everything but the verification', () => {
    const all = [...counted.values()].flatMap(({ few: statements }) => statements);
    for (const sql of all) expect(sql).toMatch(/^select /);
    expect(counted.get('GET /users')?.many).toHaveLength(1);
    expect(counted.get('GET /users/fetch/with-groups')?.many).toHaveLength(1);
    expect(counted.get('GET /users?page=1')?.many).toHaveLength(3);
    expect(counted.get('GET /users/invitations')?.many).toHaveLength(2);
    expect(counted.get('GET /service-clients')?.many).toHaveLength(1);
    expect(counted.get('GET /userAccount/sessions')?.many).toHaveLength(1);
    expect(counted.get('GET /users/email/exists')?.many).toHaveLength(2);
  });
});
