import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { day, hour, minute, second } from '../../src/base/clock.ts';
import { claimsOf } from '../support/jwt.ts';
import { type Client, TestApp, type TestResponse } from '../support/test-app.ts';

const email = 'ada@example.com';
const start = Date.UTC(2026, 10, 27, 20, 17, 0, 123);
const wholeSecond = (ms: number) => Math.floor(ms / second) * second;
const outcome = ({ status, body }: TestResponse) => (status === 200 ? '200' : `${status} ${body.error.code}`);

describe('T10: credentials and the clock', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  async function at(time: number | string, client: Client): Promise<string> {
    app.clock.set(typeof time === 'string' ? Date.parse(time) : time);
    return outcome(await client.get('/org'));
  }

  it('a session holds for exactly 24 hours (AUTH-12, AUTH-21, ERR-29)', async () => {
    app.clock.set(start);
    const session = await app.signIn(email);
    const endMs = wholeSecond(start) + 24 * hour;
    expect(claimsOf(session.credential ?? '')['exp']).toBe(endMs / second);
    expect(await at(start + 24 * hour - second, session)).toBe('200');
    expect(await at(endMs - 1, session)).toBe('200');
    expect(await at(endMs, session)).toBe('401 SESSION_EXPIRED');
    expect(await at(start + 24 * hour, session)).toBe('401 SESSION_EXPIRED');
    expect(await at(start + 24 * hour + minute, session)).toBe('401 SESSION_EXPIRED');
    const { body } = await session.get('/org');
    expect(body.message).toBe('Session expired, please login again');
  });

  it('a session is judged by the present clock alone, whichever way it was moved (HTTP-29)', async () => {
    app.clock.set(start);
    const session = await app.signIn(email);
    expect(await at(start - day, session)).toBe('200');
    expect(await at(start + day, session)).toBe('401 SESSION_EXPIRED');
    expect(await at(start + hour, session)).toBe('200');
  });

  it.each([30, 90, 365] as const)('a token of %i days holds to the second (PAT-7, AUTH-22)', async (expiryDays) => {
    app.clock.set(start);
    const token = await admin.token({ expiryDays });
    const endMs = wholeSecond(start + expiryDays * day);
    expect(await at(endMs - second, token)).toBe('200');
    expect(await at(endMs - 1, token)).toBe('200');
    expect(await at(endMs, token)).toBe('401 TOKEN_EXPIRED');
    expect(await at(endMs + minute, token)).toBe('401 TOKEN_EXPIRED');
    expect(await at(start - day, token)).toBe('200');
  });

  it('a token’s verification kept in memory does not outlive the token (AUTH-27)', async () => {
    app.clock.set(start);
    const token = await admin.token({ expiryDays: 30 });
    const endMs = wholeSecond(start + 30 * day);
    app.clock.set(endMs - 1);
    for (let call = 0; call < 5; call += 1) expect(outcome(await token.get('/org'))).toBe('200');
    app.clock.advance(1);
    expect(outcome(await token.get('/org'))).toBe('401 TOKEN_EXPIRED');
  });

  it('a token that never expires outlives the century (PAT-12)', async () => {
    app.clock.set(start);
    const token = await admin.token({ expiryDays: 'never' });
    expect(await at('2126-11-27T00:00:00Z', token)).toBe('200');
  });

  it('2038 is a year like any other', async () => {
    app.clock.set(Date.parse('2038-01-19T03:14:06.999Z'));
    const session = await app.signIn(email);
    const token = await session.token({ expiryDays: 30 });
    expect(await at('2038-01-19T03:14:07.000Z', token)).toBe('200');
    expect(await at('2038-01-19T03:14:08.000Z', session)).toBe('200');
    expect(await at('2038-02-18T03:14:05.999Z', token)).toBe('200');
    expect(await at('2038-02-18T03:14:06.000Z', token)).toBe('401 TOKEN_EXPIRED');
    expect(Number(claimsOf(token.credential ?? '')['exp'])).toBeGreaterThan(2 ** 31);
  });

  it.each([
    ['2028-01-30T12:00:00.000Z', 30, '2028-02-29T12:00:00.000Z'],
    ['2028-02-29T12:00:00.000Z', 365, '2029-02-28T12:00:00.000Z'],
    ['2027-02-28T23:59:59.999Z', 365, '2028-02-28T23:59:59.000Z'],
    ['2027-12-31T23:59:59.000Z', 90, '2028-03-30T23:59:59.000Z'],
  ])('leap days are days: %s and %i days are %s (PAT-7)', async (from, expiryDays, until) => {
    app.clock.set(Date.parse(from));
    const session = await app.signIn(email);
    const { body } = await session.post('/personal-access-tokens', { name: 'leap', expiryDays });
    expect(body.token.expiresAt).toBe(until);
    const token = app.with(body.token.accessToken);
    expect(await at(Date.parse(until) - 1, token)).toBe('200');
    expect(await at(until, token)).toBe('401 TOKEN_EXPIRED');
  });

  it('revoked stays revoked when the clock goes back behind the revocation (PAT-16)', async () => {
    app.clock.set(start);
    const token = await admin.token({ expiryDays: 'never' });
    app.clock.advance(hour);
    await admin.delete(`/personal-access-tokens/${token.tokenId}`);
    expect(await at(start - day, token)).toBe('401 TOKEN_REVOKED');
  });
});
