import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attemptSignIn } from '../../../test/support/sign-in.ts';
import { type Client, password, TestApp } from '../../../test/support/test-app.ts';

describe('the password at POST /userAccount/authenticate', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  /** Creates a user whose password was hashed as a new password is. */
  async function someUser(email: string, chosen: string): Promise<void> {
    const { body } = await admin.post('/users', { fullName: 'Somebody', email });
    const { db, passwords } = app.services;
    const row = { user_id: body._id, password_hash: await passwords.hash(chosen), updated_at: 0 };
    await db.transaction((tx) => tx.insertInto('password_credentials').values(row).execute());
  }

  async function statusWith(email: string, given: string): Promise<number> {
    return (await attemptSignIn(app, { email, password: given })).status;
  }

  it('200: composed or decomposed, one password however the keyboard wrote it (PASSWORD-4)', async () => {
    const composed = 'Ångström-7é'.normalize('NFC');
    const decomposed = composed.normalize('NFD');
    expect(composed).not.toBe(decomposed);
    await someUser('composed@example.com', composed);
    await someUser('decomposed@example.com', decomposed);
    for (const email of ['composed@example.com', 'decomposed@example.com']) {
      expect(await statusWith(email, composed)).toBe(200);
      expect(await statusWith(email, decomposed)).toBe(200);
      expect(await statusWith(email, 'Angstrom-7e')).toBe(401);
    }
  });

  it('401: twins that differ in byte 73, or in the last of 1,024 (PASSWORD-4)', async () => {
    for (const length of [72, 1_023]) {
      const common = `Aa1!${'x'.repeat(length - 4)}`;
      const email = `twin${length}@example.com`;
      await someUser(email, `${common}A`);
      expect(await statusWith(email, `${common}A`)).toBe(200);
      expect(await statusWith(email, `${common}B`)).toBe(401);
      expect(await statusWith(email, common)).toBe(401);
    }
  });

  it('401: letter case, spaces at the ends and look-alikes count (PASSWORD-4)', async () => {
    await someUser('exact@example.com', ' Spaced-Out-7 ');
    for (const given of ['Spaced-Out-7', ' spaced-out-7 ', ' Spaced-Out-7', ' Spaced-Out-７ ', ' Spaced‐Out‐7 ']) {
      expect(await statusWith('exact@example.com', given), given).toBe(401);
    }
    expect(await statusWith('exact@example.com', ' Spaced-Out-7 ')).toBe(200);
  });

  it('400: a NUL does not end the password (HTTP-13, PASSWORD-4)', async () => {
    expect(await statusWith('ada@example.com', `${password}\0`)).toBe(400);
    expect(await statusWith('ada@example.com', `${password}\0more`)).toBe(400);
  });

  it('401, or 400 when no password can be so long; quickly (PASSWORD-3)', async () => {
    expect(await statusWith('ada@example.com', 'x'.repeat(4_096))).toBe(401);
    expect(await statusWith('ada@example.com', 'x'.repeat(4_097))).toBe(400);
    const startedAt = performance.now();
    expect(await statusWith('ada@example.com', 'x'.repeat(1_000_000))).toBe(400);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});
