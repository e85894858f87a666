import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BearerGets, bearerGets } from '../support/bearer-gets.ts';
import { type Client, type Json, TokenClient } from '../support/test-app.ts';
import { insist, TwoNodes } from '../support/two-nodes.ts';

const races = 200;
const atOnce = 8;

describe('two nodes: what one takes away, the other does not give', () => {
  let nodes: TwoNodes;
  let admin: Client;
  beforeAll(async () => {
    nodes = await TwoNodes.start();
    admin = await nodes.a.setUp();
  });
  afterAll(() => nodes.close());

  async function makeToken(): Promise<TokenClient> {
    const ask = () => admin.post('/personal-access-tokens', { name: 'test' });
    const { body } = await insist(ask, ({ status }) => status);
    return new TokenClient(nodes.a, body.token, admin.userId);
  }

  /** Revokes at one node what is in use at the other; answers how it was there before and afterwards. */
  async function race(token: TokenClient, { uses, revoke }: { uses: BearerGets; revoke: Client }) {
    const use = () =>
      insist(
        () => uses.status('/api/v1/org', token.credential),
        (status) => status,
      );
    // Known there, so that it is kept in memory.
    const before = [await use(), await use()];
    const meanwhile = [use(), use(), use()];
    const end = () => revoke.delete(`/personal-access-tokens/${token.tokenId}`);
    const { status: revoked } = await insist(end, ({ status }) => status);
    const after = [await use(), await use()];
    await Promise.all(meanwhile);
    return { before, revoked, after };
  }

  it(`after ${races} revocations at one node no verification at the other succeeds (NODE-1)`, async () => {
    const uses = nodes.both.map(({ url }) => bearerGets(url));
    const revokers = [nodes.atB(admin), admin];
    for (let done = 0; done < races; ) {
      const some = await Promise.all(Array.from({ length: atOnce }, makeToken));
      const raced = some.map((token, place) => {
        const [at, revoke] = [uses[place % 2], revokers[place % 2]];
        if (!at || !revoke) throw new Error('there are two nodes');
        return race(token, { uses: at, revoke });
      });
      const outcomes = await Promise.all(raced);
      expect(outcomes).toEqual(raced.map(() => ({ before: [200, 200], revoked: 200, after: [401, 401] })));
      done += outcomes.length;
    }
    for (const { close } of uses) close();
  }, 120_000);

  it('a sign-out, of one session or of all, holds at the other node at once (NODE-1)', async () => {
    const { a, b } = nodes;
    const one = await a.signIn('ada@example.com');
    expect((await nodes.atB(one).get('/org')).status).toBe(200);
    expect((await one.post('/userAccount/logout/manual')).status).toBe(200);
    expect((await nodes.atB(one).get('/org')).status).toBe(401);

    const grace = await a.member(admin, 'grace@example.com');
    const again = await b.signIn('grace@example.com');
    expect((await nodes.atB(grace).get('/org')).status).toBe(200);
    expect((await again.post('/userAccount/logout/manual', { all: true })).status).toBe(200);
    expect((await grace.get('/org')).status).toBe(401);
  });

  it('who was deleted at one node has nothing that works at the other (NODE-1, STORE-7)', async () => {
    const linus = await nodes.a.member(admin, 'linus@example.com');
    const token = await linus.token();
    for (const held of [linus, token]) expect((await nodes.atB(held).get('/org')).status).toBe(200);
    expect((await admin.delete(`/users/${linus.userId}`)).status).toBe(200);
    for (const held of [linus, token]) expect((await nodes.atB(held).get('/org')).status).toBe(401);
  });

  it('who is an administrator no longer at one node is none at the other (NODE-1)', async () => {
    const joan = await nodes.a.member(admin, 'joan@example.com');
    const { groups } = (await admin.get('/userGroups')).body;
    const groupIds = [groups.find((group: Json) => group.type === 'admin')._id];
    const userIds = [joan.userId];
    const mayAdminister = async () => (await nodes.atB(joan).get('/audit')).status;
    expect(await mayAdminister()).toBe(403);
    expect((await admin.post('/userGroups/add-users', { userIds, groupIds })).status).toBe(200);
    expect(await mayAdminister()).toBe(200);
    expect((await admin.post('/userGroups/remove-users', { userIds, groupIds })).status).toBe(200);
    expect(await mayAdminister()).toBe(403);
  });

  it('a deleted organization is gone at both nodes (NODE-1)', async () => {
    const { a, b } = nodes;
    const token = await admin.token();
    expect((await nodes.atB(token).get('/org')).status).toBe(200);
    await a.deleteOrganization();
    for (const held of [token, admin]) expect((await nodes.atB(held).get('/org')).status).toBe(401);
    expect((await b.anonymous.get('/org/exists')).body).toEqual({ exists: true });
  });
});
