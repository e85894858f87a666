import { createHmac, hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeIn, SignInDesk } from '../../../test/sign-in-desk.ts';

const all = 1_000_000;

/** What somebody finds who has the store, and tries every code there is. */
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
    const rows = await desk.app.services.db.read.selectFrom('one_time_codes').selectAll().execute();
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
