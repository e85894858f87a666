import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const path = '/userAccount/sessions';
const day = 24 * 60 * 60_000;
const expired = {
  status: 401,
  body: { message: 'Session expired, please login again', error: { code: 'SESSION_EXPIRED' } },
};
const notFound = { status: 404, body: { error: { code: 'NOT_FOUND' } } };

describe('DELETE /userAccount/sessions/:id', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  const signIn = async (): Promise<Json> => (await app.signInTokens('grace@example.com')).body;
  const idOf = async ({ accessToken }: Json): Promise<string> => {
    const { body } = await app.with(accessToken).get(path);
    return body.sessions.find(({ isCurrent }: Json) => isCurrent).id;
  };

  it('200: ends the session with all its tokens, and no other (AUTH-21, AUTH-54)', async () => {
    const [mine, other] = [await signIn(), await signIn()];
    const otherId = await idOf(other);
    const { body: refreshed } = await app.with(other.refreshToken).post('/userAccount/refresh/token');
    const rows = (await app.audit()).length;
    const response = await app.with(mine.accessToken).delete(`${path}/${otherId.toUpperCase()}`);
    expect(response).toMatchObject({ status: 200, body: { message: 'Session ended' } });
    for (const pair of [other, refreshed]) {
      expect(await app.with(pair.accessToken).get('/org')).toMatchObject(expired);
      expect(await app.with(pair.refreshToken).post('/userAccount/refresh/token')).toMatchObject(expired);
    }
    const { body } = await app.with(mine.accessToken).get(path);
    expect(body.sessions.map(({ id }: Json) => id)).not.toContain(otherId);
    const [row, ...more] = (await app.audit()).slice(rows);
    expect(row).toMatchObject({ action: 'session.ended', subject_id: otherId });
    expect(more).toEqual([]);
  });

  it('200: this one, too (AUTH-54)', async () => {
    const mine = await signIn();
    expect((await app.with(mine.accessToken).delete(`${path}/${await idOf(mine)}`)).status).toBe(200);
    expect(await app.with(mine.accessToken).get('/org')).toMatchObject(expired);
  });

  it("404: one that has ended, is expired, is someone else's or never was, and nothing ends (AUTH-54)", async () => {
    const [mine, ended, hers] = [await signIn(), await signIn(), (await app.signInTokens('ada@example.com')).body];
    const endedId = await idOf(ended);
    const hersId = await idOf(hers);
    const caller = app.with(mine.accessToken);
    expect((await caller.delete(`${path}/${endedId}`)).status).toBe(200);
    const rows = (await app.audit()).length;
    for (const id of [endedId, hersId, '0'.repeat(24), admin.userId]) {
      expect(await caller.delete(`${path}/${id}`), id).toMatchObject(notFound);
    }
    expect((await app.with(hers.accessToken).get('/org')).status).toBe(200);
    expect(await app.audit()).toHaveLength(rows);

    const oldId = await idOf(mine);
    app.clock.advance(30 * day);
    const { accessToken } = await signIn();
    expect(await app.with(accessToken).delete(`${path}/${oldId}`)).toMatchObject(notFound);
  });

  it('404: also for an administrator, whose right it is not (AUTH-54)', async () => {
    const mine = await signIn();
    const administrator = await app.signIn('ada@example.com');
    expect(await administrator.delete(`${path}/${await idOf(mine)}`)).toMatchObject(notFound);
    expect((await app.with(mine.accessToken).get('/org')).status).toBe(200);
  });

  it('400: an id that is none (ERR-10)', async () => {
    const caller = app.with((await signIn()).accessToken);
    for (const id of ['x', 'a'.repeat(23), 'g'.repeat(24)]) {
      expect((await caller.delete(`${path}/${id}`)).status, id).toBe(400);
    }
  });

  it('403: a personal access token, whatever its scopes (AUTH-32)', async () => {
    const mine = await signIn();
    const token = await app.with(mine.accessToken).token();
    const response = await token.delete(`${path}/${await idOf(mine)}`);
    expect(response).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } });
    expect((await app.with(mine.accessToken).get('/org')).status).toBe(200);
  });

  it('401: no one (AUTH-19)', async () => {
    expect((await app.anonymous.delete(`${path}/${'0'.repeat(24)}`)).status).toBe(401);
  });
});
