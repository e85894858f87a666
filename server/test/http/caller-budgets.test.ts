import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { minute } from '../../src/base/clock.ts';
import { recordRejection } from '../../src/features/sign-in/public.ts';
import { callTool, send } from '../support/agents.ts';
import { addManyUsers } from '../support/many-users.ts';
import { type Client, type Json, TestApp, type TestResponse, type TokenClient } from '../support/test-app.ts';

const [writes, reads] = [300, 600];

describe('what one caller may consume', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let token: TokenClient;

  beforeAll(async () => {
    app = await TestApp.start({ RATE_LIMIT: 'on' });
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    token = await member.token();
  });
  beforeEach(() => app.clock.advance(2 * minute));
  afterAll(() => app.close());

  const owner = () => ({ userId: member.userId, isAdmin: false });
  const rename = (client: Client) => client.patch(`/users/${member.userId}/designation`, { designation: 'Admiral' });
  const told = ({ status, headers }: TestResponse) => [
    status,
    headers.get('ratelimit-limit'),
    headers.get('ratelimit-remaining'),
  ];

  async function useUp(): Promise<void> {
    const count = () => app.services.limits.countWrite(owner());
    for (let made = 0; made < writes; made += 1) await count().catch(() => {});
  }

  it('429: one change more than 300 in a minute, by whatever credential, as route or tool, changes nothing (HTTP-35)', async () => {
    for (let made = 1; made < writes; made += 1) await app.services.limits.countWrite(owner());
    expect((await rename(member)).status).toBe(200);
    const before = await app.audit();
    for (const client of [member, token]) {
      const refused = await rename(client);
      expect(told(refused)).toEqual([429, '300', '0']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    const { isError, _meta } = await callTool(token, 'update_user', {
      id: member.userId,
      email: 'grace@example.com',
      fullName: 'Grace B. Hopper',
    });
    expect([isError, _meta['io.latchkey/error'].code]).toEqual([true, 'RATE_LIMITED']);
    expect(await app.audit()).toHaveLength(before.length);
    expect((await member.get('/users')).status).toBe(200);
    expect((await admin.patch('/org', { shortName: 'Others' })).status).toBe(200);
    app.clock.advance(minute);
    expect((await rename(token)).status).toBe(200);
  });

  it('every response to what a budget is charged for shows what is left, and no other does (FIT-143)', async () => {
    const left = (response: TestResponse) => [...told(response), response.headers.get('ratelimit-reset')];
    expect(left(await rename(member))).toEqual([200, '300', '299', '60']);
    app.clock.advance(20_500);
    const wrong = await member.patch(`/users/${member.userId}/designation`, { designation: 7 });
    expect(told(wrong)).toEqual([400, null, null]);
    expect(
      left(await member.post('/teams', { name: 'A', members: [{ userId: 'f'.repeat(24), role: 'READER' }] })),
    ).toEqual([400, '300', '298', '40']);
    expect(left(await admin.patch('/org', { shortName: 'Others' }))).toEqual([200, '3000', '2999', '60']);
    expect(left(await member.get('/users'))).toEqual([200, '600', '599', '60']);
    expect(told(await member.get(`/users/${member.userId}`))).toEqual([200, null, null]);
    expect(told(await app.anonymous.get('/users'))).toEqual([401, null, null]);
  });

  it('200: what takes power away is free, so that a thief cannot keep the owner from it (HTTP-35)', async () => {
    const session = await app.signIn('grace@example.com');
    const { tokenId } = await member.token();
    await useUp();
    expect((await member.post('/personal-access-tokens', { name: 'one more' })).status).toBe(429);
    expect((await member.delete(`/personal-access-tokens/${tokenId}`)).status).toBe(200);
    expect((await session.post('/userAccount/logout/manual')).status).toBe(200);
  });

  it('what is refused for its input costs nothing', async () => {
    for (let made = 1; made < writes; made += 1) await app.services.limits.countWrite(owner());
    for (let tried = 0; tried < 5; tried += 1) {
      expect((await member.patch(`/users/${member.userId}/designation`, { designation: 7 })).status).toBe(400);
    }
    expect((await rename(member)).status).toBe(200);
  });

  it('429: one costly read more than 600 in a minute, and none of what is cheap (HTTP-36)', async () => {
    for (let made = 0; made < reads; made += 1) app.services.limits.countRead(owner());
    for (const path of ['/users', '/users?search=a', '/userGroups', '/users/fetch/with-groups']) {
      expect(told(await member.get(path))).toEqual([429, '600', '0']);
    }
    expect((await member.post('/users/by-ids', { userIds: [member.userId] })).status).toBe(429);
    expect((await callTool(token, 'list_users')).isError).toBe(true);
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    expect((await send(token, [ping, ping])).status).toBe(429);
    expect((await send(token, ping)).status).toBe(200);
    expect((await member.get(`/users/${member.userId}`)).status).toBe(200);
    expect((await admin.get('/users')).status).toBe(200);
  });

  it('429: more than five seconds of reads in a minute, whatever they were, as route, tool or in a batch (HTTP-36, MCP-17)', async () => {
    app.services.limits.chargeReadTime(owner(), 4_000);
    expect((await member.get('/users?search=grace')).status).toBe(200);
    app.services.limits.chargeReadTime(owner(), 1_001);
    const refused = await member.get('/users?search=grace');
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
    const { isError, _meta } = await callTool(token, 'list_users', { search: 'grace' });
    expect([isError, _meta['io.latchkey/error'].code]).toEqual([true, 'RATE_LIMITED']);
    expect((await member.get('/org')).status).toBe(200);
    expect((await admin.get('/users?search=grace')).status).toBe(200);
    app.clock.advance(minute);
    expect((await member.get('/users?search=grace')).status).toBe(200);
  });

  it('the time of each read is charged, and forty at once are too many of one caller, not of all (HTTP-36, HTTP-38)', async () => {
    const charged: number[] = [];
    const { chargeReadTime } = app.services.limits;
    app.services.limits.chargeReadTime = (user, ms) => {
      charged.push(ms);
      chargeReadTime(user, ms);
    };
    const responses = await Promise.all(Array.from({ length: 40 }, () => member.get('/users?search=grace')));
    app.services.limits.chargeReadTime = chargeReadTime;
    const statuses = new Set(responses.map(({ status }) => status));
    expect([...statuses].every((status) => status === 200 || status === 429)).toBe(true);
    expect(charged.length).toBe(responses.filter(({ status }) => status === 200).length);
    expect(charged.every((ms) => ms > 0)).toBe(true);
  });

  it('400: a search reads no further than 10,000 items, as route and as tool (HTTP-39)', async () => {
    const { groups } = (await admin.get('/userGroups')).body;
    for (const path of [
      '/users',
      `/userGroups/${groups[0]._id}/users`,
      '/users/graph/list',
      '/userGroups',
      '/teams/user/teams',
    ]) {
      expect([(await member.get(`${path}?search=a&page=100&limit=100`)).status, path]).toEqual([200, path]);
      const refused = await member.get(`${path}?search=a&page=101&limit=100`);
      expect([refused.status, refused.body.error.details[0].field]).toEqual([400, 'query.page']);
    }
    expect((await admin.get('/users/invitations?search=a&page=900&limit=100')).status).toBe(400);
    expect((await admin.get('/personal-access-tokens/admin?search=a&page=900&limit=100')).status).toBe(400);
    expect((await member.get('/users?page=101&limit=100')).status).toBe(200);
    const asked = { groupId: groups[0]._id, limit: 100, page: 900, search: 'a' };
    expect((await callTool(token, 'list_group_members', asked)).isError).toBe(true);
  });

  it('a list costs as much more as it is long, a group with many members too (HTTP-36, GROUP-9)', async () => {
    const ids = await addManyUsers(app, 2_500);
    const { groups } = (await admin.get('/userGroups')).body;
    const { _id } = groups.find(({ type }: Json) => type === 'everyone');
    expect((await member.get('/users')).body).toHaveLength(ids.length + 2);
    const { status, body } = await member.get(`/userGroups/${_id}`);
    expect([status, body.users, body.type]).toEqual([200, [admin.userId, member.userId, ...ids], 'everyone']);
    const result = await callTool(token, 'get_group', { groupId: _id });
    expect(result.structuredContent).toEqual(body);
    expect(JSON.parse(result.content[0].text)).toEqual(body);
    let left = 0;
    expect(() => {
      for (; left < reads; left += 1) app.services.limits.countRead(owner());
    }).toThrow('Too many requests');
    // Three calls, each of them with 2,502 rows.
    expect(left).toBe(reads - 3 - 3 * 2);
  });

  it('refused sign-ins: 60 a minute of one network are recorded, then one record has the rest as a count (AUDIT-17)', async () => {
    const { id: orgId } = await app.services.db.read.selectFrom('organizations').select('id').executeTakeFirstOrThrow();
    const refused = async () => (await app.audit()).filter(({ action }) => action === 'sign-in.refused');
    const before = (await refused()).length;
    const refuse = (network: string) =>
      recordRejection(app.services, { orgId, userId: null, method: 'password', origin: { requestId: 'r', network } });
    const { add } = app.services.rejectionCounter;
    let counted = 0;
    app.services.rejectionCounter.add = (one) => {
      add(one);
      counted += 1;
    };
    for (let tried = 0; tried < 100; tried += 1) refuse('192.0.2.7');
    refuse('192.0.2.8');
    await vi.waitUntil(async () => counted === 40 && (await refused()).length === before + 61, { timeout: 20_000 });
    app.services.rejectionCounter.add = add;
    app.clock.advance(30_000);
    await app.services.rejectionCounter.write();
    await app.services.rejectionCounter.write();
    const rows = (await refused()).slice(before);
    expect(rows).toHaveLength(62);
    const { network, details, outcome } = rows.at(-1);
    expect([network, outcome, details.count]).toEqual(['192.0.2.7', 'failure', 40]);
    expect(Date.parse(details.until) - Date.parse(details.since)).toBe(30_000);
  });
});
