import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const email = 'ada@example.com';
const path = '/userAccount/logout/manual';
const expired = {
  status: 401,
  body: { message: 'Session expired, please login again', error: { code: 'SESSION_EXPIRED' } },
};

interface Pair {
  readonly accessToken: string;
  readonly refreshToken: string;
}

describe('POST /userAccount/logout/manual', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  async function signIn(user = email): Promise<Pair> {
    return (await app.signInTokens(user)).body;
  }
  const look = async (pair: Pair) => (await app.with(pair.accessToken).get('/org')).status;
  const refresh = (pair: Pair) => app.with(pair.refreshToken).post('/userAccount/refresh/token');

  async function expectEnded(pair: Pair): Promise<void> {
    expect(await app.with(pair.accessToken).get('/org')).toMatchObject(expired);
    expect(await refresh(pair)).toMatchObject(expired);
  }

  it('200: ends this session, its access and refresh tokens, and no other (AUTH-18, AUTH-21, ERR-29)', async () => {
    const [first, other] = [await signIn(), await signIn()];
    const { body: refreshed } = await refresh(first);
    expect(await app.with(refreshed.accessToken).post(path)).toMatchObject({
      status: 200,
      body: { message: 'Logged out' },
    });
    await expectEnded(first);
    await expectEnded(refreshed);
    expect(await look(other)).toBe(200);
    expect((await refresh(other)).status).toBe(200);
    const again = await app.with(first.accessToken).post(path);
    expect(again).toMatchObject(expired);
    expect(again.headers.get('www-authenticate')).toBe('Bearer realm="latchkey", error="invalid_token"');
  });

  it('200: with all it ends every session of the person, and nothing of anyone else (AUTH-18)', async () => {
    await app.member(admin, 'grace@example.com');
    const [one, two, hers] = [await signIn('grace@example.com'), await signIn('grace@example.com'), await signIn()];
    const token = await app.with(one.accessToken).token();
    expect((await app.with(one.accessToken).post(path, { all: true })).status).toBe(200);
    await expectEnded(one);
    await expectEnded(two);
    expect(await look(hers)).toBe(200);
    // A personal access token is no session.
    expect((await token.get('/org')).status).toBe(200);
    expect(await look(await signIn('grace@example.com'))).toBe(200);
  });

  it('200: an empty body and all: false end this session only (AUTH-18, HTTP-17)', async () => {
    const other = await signIn();
    for (const options of [
      { raw: '', headers: { 'content-type': 'application/json' } },
      { body: {} },
      { body: { all: false } },
    ]) {
      const mine = await signIn();
      expect((await app.with(mine.accessToken).call('POST', path, options)).status).toBe(200);
      await expectEnded(mine);
    }
    expect(await look(other)).toBe(200);
  });

  it('200: one row of the audit log for each session that ended (AUDIT-1)', async () => {
    await app.member(admin, 'mary@example.com');
    const [one] = [await signIn('mary@example.com'), await signIn('mary@example.com')];
    const before = (await app.audit()).length;
    await app.with(one.accessToken).post(path, { all: true });
    const rows = (await app.audit()).slice(before);
    // The third is the one that came with creating her.
    expect(rows.map(({ action }) => action)).toEqual(['session.ended', 'session.ended', 'session.ended']);
    expect(new Set(rows.map(({ subject_id }) => subject_id)).size).toBe(3);
  });

  it('400: all is yes or no, and then nothing ends (HTTP-14)', async () => {
    const mine = await signIn();
    for (const all of ['true', 1, null, []]) {
      expect((await app.with(mine.accessToken).post(path, { all })).status).toBe(400);
    }
    expect(await look(mine)).toBe(200);
  });

  it('403: a personal access token, whatever its scopes (AUTH-32)', async () => {
    const token = await admin.token();
    expect(await token.post(path)).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } });
    expect((await token.get('/org')).status).toBe(200);
  });

  it('401: no one (AUTH-19)', async () => {
    expect(await app.anonymous.post(path)).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
  });
});
