import { createHmac, hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimsOf } from '../../../test/support/jwt.ts';
import { codeIn, otherCode, SignInDesk } from '../../../test/support/sign-in-desk.ts';
import { clearSlowDown } from '../sign-in/public.ts';
import { pruneCodes } from './public.ts';

const all = 1_000_000;
const hour = 3_600_000;
const email = 'ada@example.com';

/** Returns the code that an attacker finds who has the store, and tries every code there is. */
function findCode(stored: string, maker: (code: string) => string): string | null {
  for (let number = 0; number < all; number += 1) {
    const code = String(number).padStart(6, '0');
    if (maker(code) === stored) return code;
  }
  return null;
}

describe('a one-time code in the store', () => {
  let desk: SignInDesk;
  beforeAll(async () => {
    desk = await SignInDesk.start();
  });
  afterAll(() => desk.close());

  it('is found by none of a million guesses without the key (AUTH-51, PASSWORD-6)', async () => {
    await desk.askForCode('ada@example.com');
    const code = codeIn(await desk.mail.mailTo('ada@example.com'));
    const rows = await desk.app.services.db.read.selectFrom('mailed_codes').selectAll().execute();
    expect(rows).toHaveLength(1);
    const [row] = rows;
    const { mac, user_id: userId } = row ?? {};
    if (typeof mac !== 'string' || userId === undefined) throw new Error('nothing is stored');
    expect(JSON.stringify(rows)).not.toContain(`"${code}"`);
    const plainly = (text: string) => hash('sha256', text, 'base64url');
    const known = [(given: string) => plainly(given), (given: string) => plainly(`${userId} ${given}`)];
    // The search finds what is only hashed.
    expect(findCode(plainly(code), plainly)).toBe(code);
    expect(known.map((maker) => findCode(mac, maker))).toEqual([null, null]);
    // With the key, and only for its owner, it is this one.
    const { encryption } = desk.app.services;
    expect(encryption.mac('one-time code', `${userId} ${code}`)).toBe(mac);
    expect(encryption.mac('one-time code', `${'0'.repeat(24)} ${code}`)).not.toBe(mac);
    expect(createHmac('sha256', '').update(`${userId} ${code}`).digest('base64url')).not.toBe(mac);
  });
});

describe('a one-time code that is asked for within a sign-in (AUTH-73)', () => {
  let desk: SignInDesk;
  beforeAll(async () => {
    desk = await SignInDesk.start();
  });
  afterAll(() => desk.close());
  async function codeWithin(token: string): Promise<string> {
    desk.mail.clear();
    await desk.askForCode(email, token);
    return codeIn(await desk.mail.mailTo(email));
  }

  it('is not found with a copy of the store and the key', async () => {
    const token = await desk.begin(email);
    const code = await codeWithin(token);
    const { encryption, db } = desk.app.services;
    const { mac, user_id: userId } = await db.read.selectFrom('mailed_codes').selectAll().executeTakeFirstOrThrow();
    const guesses = ['one-time code', 'one-time code of a sign-in'].map(
      (purpose) => (given: string) => encryption.mac(purpose, `${userId} ${given}`),
    );
    // The code itself is among all guesses, so that it stands for them.
    for (const guess of guesses) expect(guess(code)).not.toBe(mac);
    const random = String(claimsOf(token)['rnd']);
    expect(encryption.mac('one-time code of a sign-in', `${userId} ${random} ${code}`)).toBe(mac);
    expect((await desk.take(token, ['otp', code])).status).toBe(200);
  });

  it('401: is taken by that sign-in alone, once', async () => {
    const [token, another] = [await desk.begin(email), await desk.begin(email)];
    const code = await codeWithin(token);
    expect((await desk.take(another, ['otp', code])).status).toBe(401);
    expect((await desk.take(token, ['otp', code])).status).toBe(200);
    expect((await desk.take(token, ['otp', code])).status).toBe(401);
  });

  it('200: one that was asked for without a sign-in, or with what is none, is taken by any', async () => {
    desk.app.clock.advance(hour);
    for (const token of [undefined, 'no token', await desk.begin('eve@example.com')]) {
      desk.mail.clear();
      await desk.askForCode(email, token);
      const code = codeIn(await desk.mail.mailTo(email));
      expect((await desk.signIn(email, 'otp', code)).status).toBe(200);
    }
  });
});

describe('wrong one-time codes', () => {
  let desk: SignInDesk;
  beforeAll(async () => {
    desk = await SignInDesk.start();
  });
  afterAll(() => desk.close());

  const statusOf = async (code: string) => (await desk.signIn(email, 'otp', code)).status;
  async function guess(times: number): Promise<void> {
    for (let tried = 0; tried < times; tried += 1) {
      if (tried % 5 === 0) code = await desk.codeFor(email);
      expect(await statusOf(otherCode(code, (tried % 5) + 1))).toBe(401);
    }
  }
  let code = '';
  const rows = () => desk.app.services.db.read.selectFrom('mailed_codes').selectAll().execute();
  /** Returns whether a mail with a code is sent, while the response is the same. */
  async function isMailed(): Promise<boolean> {
    desk.mail.clear();
    const { status, body } = await desk.askForCode(email);
    expect({ status, body }).toEqual({ status: 200, body: (await desk.askForCode('eve@example.com')).body });
    return desk.mail.mails.length > 0;
  }

  it('after 30 in a day there are no codes for 24 hours, and none is right (AUTH-71)', async () => {
    await guess(28);
    desk.app.clock.advance(23 * hour);
    await guess(1);
    expect(await statusOf(code)).toBe(200);
    await guess(1);
    expect(await statusOf(code)).toBe(401);
    expect(await isMailed()).toBe(false);
    // Counted in the store: a restart forgets nothing.
    expect(await rows()).toMatchObject([{ wrong_count: 30 }]);
    desk.app.clock.advance(24 * hour - 1);
    expect(await isMailed()).toBe(false);
    expect((await desk.signIn(email, 'password', 'Marble-Kettle-7')).status).toBe(200);
    desk.app.clock.advance(1);
    expect(await statusOf(await desk.codeFor(email))).toBe(200);
  });

  it('over more than a day turn nothing off; a clock that is set back keeps codes off no longer than a day (AUTH-71)', async () => {
    await guess(29);
    desk.app.clock.advance(24 * hour);
    await guess(29);
    expect(await isMailed()).toBe(true);
    await guess(1);
    expect(await isMailed()).toBe(false);
    desk.app.clock.advance(-hour);
    expect(await isMailed()).toBe(true);
  });

  it('are forgotten when the slow-down of the account is ended, and when they count no longer (AUTH-71)', async () => {
    await guess(30);
    expect(await isMailed()).toBe(false);
    const { db } = desk.app.services;
    const [row] = await rows();
    await db.transaction((tx) => clearSlowDown(tx, desk.app.services, { userId: row?.user_id ?? '', email }));
    expect(await isMailed()).toBe(true);
    await guess(1);
    desk.app.clock.advance(24 * hour + 1);
    expect(await pruneCodes(desk.app.services)).toBe(1);
    expect(await rows()).toEqual([]);
  });
});
