import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signedOut } from '../support/recovery.ts';
import type { Client } from '../support/test-app.ts';
import { TwoNodes } from '../support/two-nodes.ts';

const path = '/userAccount/refresh/token';

describe('two nodes: one chain of refresh tokens', () => {
  let nodes: TwoNodes;
  let admin: Client;
  beforeAll(async () => {
    nodes = await TwoNodes.start();
    admin = await nodes.a.setUp();
  });
  afterAll(() => nodes.close());

  it('32 refreshes at once at both answer one pair, and so does a later one at either (SESSION-5)', async () => {
    const { a, b } = nodes;
    await a.member(admin, 'grace@example.com');
    const { body: first } = await a.signInTokens('grace@example.com');
    const at = (place: number) => (place % 2 === 0 ? a : b).with(first.refreshToken).post(path);
    const responses = (await Promise.all(Array.from({ length: 32 }, (_, place) => at(place)))).filter(
      ({ status }) => status !== 503,
    );
    responses.push(await at(0), await at(1));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
    const pair = responses[0]?.body;
    a.clock.advance(10_000);
    expect(await at(1)).toMatchObject(signedOut);
    for (const node of nodes.both) expect(await node.with(pair.accessToken).get('/org')).toMatchObject(signedOut);
  });

  it('what one ends, the other neither serves nor refreshes (SESSION-1, SESSION-8)', async () => {
    const { a, b } = nodes;
    const { userId } = await a.member(admin, 'joan@example.com');
    const { body: pair } = await b.signInTokens('joan@example.com');
    const { body: next } = await b.with(pair.refreshToken).post(path);
    expect((await b.with(next.accessToken).get('/org')).status).toBe(200);
    expect((await admin.delete(`/users/${userId}/sessions`)).body.ended).toBeGreaterThan(0);
    for (const { accessToken, refreshToken } of [pair, next]) {
      expect(await b.with(accessToken).get('/org')).toMatchObject(signedOut);
      expect(await b.with(refreshToken).post(path)).toMatchObject(signedOut);
    }
  });

  it('an account that is unblocked at one signs in at the other (SESSION-10)', async () => {
    const { a, b } = nodes;
    const { userId } = await a.member(admin, 'mary@example.com');
    for (const node of nodes.both) {
      Object.assign(node.environment, { RATE_LIMIT: 'on' });
      node.services.reloadConfig();
    }
    for (let count = 0; count < 8; count += 1) await b.signInTokens('mary@example.com', 'Wrong-Horse-7!');
    expect((await b.signInTokens('mary@example.com')).status).toBe(429);
    expect((await admin.put(`/users/${userId}/unblock`)).status).toBe(200);
    expect((await b.signInTokens('mary@example.com')).status).toBe(200);
  });
});
