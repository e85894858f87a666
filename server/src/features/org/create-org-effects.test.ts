import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, organization, password, TestApp } from '../../../test/support/test-app.ts';

describe('what POST /org leaves behind', () => {
  let app: TestApp;
  let created: Json;
  let admin: Client;
  let requestId: string | null;
  beforeAll(async () => {
    app = await TestApp.start({ METRICS: 'on' }, undefined, { isHashDear: true });
    const response = await app.anonymous.post('/org', organization, { headers: { 'x-request-id': 'first-of-all' } });
    created = response.body;
    requestId = response.headers.get('x-request-id');
    admin = await app.signIn(organization.contactEmail);
  });
  // Looks for the password and for every token in all files and in the log (PASSWORD-6, STORE-8).
  afterAll(() => app.close());

  it('one administrator (ORG-9, STORE-3)', async () => {
    const users = await app.services.db.read.selectFrom('users').selectAll().execute();
    expect(users).toHaveLength(1);
    expect(users[0]).toMatchObject({
      id: admin.userId,
      org_id: created._id,
      slug: 'user-1001',
      email: 'ada@example.com',
      full_name: 'Ada Lovelace',
      is_deleted: 0,
    });
  });

  it('the groups admin, everyone and standard; the administrator is in the first two (ORG-9, ORG-10)', async () => {
    const { read } = app.services.db;
    const groups = await read.selectFrom('user_groups').orderBy('slug').selectAll().execute();
    const shown = groups.map(({ slug, name, type, is_system, org_id }) => [slug, name, type, is_system, org_id]);
    expect(shown).toEqual([
      ['usergroup-1001', 'admin', 'admin', 1, created._id],
      ['usergroup-1002', 'everyone', 'everyone', 1, created._id],
      ['usergroup-1003', 'standard', 'standard', 1, created._id],
    ]);
    const members = await read
      .selectFrom('group_members as m')
      .innerJoin('user_groups as g', 'g.id', 'm.group_id')
      .select(['g.type', 'm.user_id'])
      .orderBy('g.type')
      .execute();
    expect(members).toEqual([
      { type: 'admin', user_id: admin.userId },
      { type: 'everyone', user_id: admin.userId },
    ]);
  });

  it('the password as argon2id hash, in no answer (ORG-9, PASSWORD-4, PASSWORD-5)', async () => {
    const rows = await app.services.db.read.selectFrom('password_credentials').selectAll().execute();
    expect(rows).toHaveLength(1);
    expect(rows[0]?.user_id).toBe(admin.userId);
    const hash = rows[0]?.password_hash ?? '';
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    const responses = [created, (await admin.get('/org')).body, (await admin.get(`/users/${admin.userId}`)).body];
    const shown = JSON.stringify([responses, await app.events(), await app.audit()]);
    for (const secret of [password, hash, 'argon2']) expect(shown).not.toContain(secret);
  });

  it('how people sign in: one step, with the password (ORG-10, AUTH-5)', async () => {
    const rows = await app.services.db.read.selectFrom('auth_configs').selectAll().execute();
    expect(rows).toHaveLength(1);
    expect(rows[0]?.org_id).toBe(created._id);
    expect(JSON.parse(rows[0]?.steps ?? '')).toEqual([{ order: 1, allowedMethods: [{ type: 'password' }] }]);
  });

  it('the events orgCreated and then userAdded (ORG-14, EVENT-3, EVENT-5)', async () => {
    const events = await app.events();
    expect(
      events.map(({ sequence, event_type, org_id, payload }) => ({ sequence, event_type, org_id, payload })),
    ).toEqual([
      {
        sequence: 1,
        event_type: 'orgCreated',
        org_id: created._id,
        payload: { orgId: created._id, accountType: 'business', registeredName: 'Example Ltd' },
      },
      {
        sequence: 2,
        event_type: 'userAdded',
        org_id: created._id,
        payload: {
          orgId: created._id,
          userId: admin.userId,
          email: 'ada@example.com',
          fullName: 'Ada Lovelace',
          syncAction: 'none',
        },
      },
    ]);
    for (const { id, occurred_at } of events) {
      expect(id).toMatch(/^[a-f0-9]{24}$/);
      expect(occurred_at).toBe(app.clock.now());
    }
  });

  it('a row of the audit log and a metric (ORG-15, AUDIT-2)', async () => {
    const [row] = await app.audit();
    expect(row).toMatchObject({
      sequence: 1,
      action: 'org.created',
      org_id: created._id,
      subject_id: created._id,
      actor_user_id: admin.userId,
      actor_token_id: null,
      network: '127.0.0.1',
      request_id: 'first-of-all',
      occurred_at: app.clock.now(),
    });
    expect(requestId).toBe('first-of-all');
    expect((await app.anonymous.get('//metrics')).text).toContain('latchkey_activity_total{action="org.created"} 1\n');
  });
});
