import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MailServer } from '../../../test/support/mail-server.ts';
import { mailedToken, opens, resetWith, startWithMail } from '../../../test/support/recovery.ts';
import { password, type TestApp } from '../../../test/support/test-app.ts';

const email = 'ada@example.com';

describe('the password at POST /userAccount/password/reset/token (N9)', () => {
  let mails: MailServer;
  let app: TestApp;
  beforeAll(async () => {
    mails = await MailServer.start();
    app = await startWithMail(mails);
    await app.setUp();
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  /** Sets a password with a link of its own. */
  async function choose(given: string): Promise<void> {
    const { status, text } = await resetWith(app, await mailedToken({ app, mails }, email), given);
    expect(status, text).toBe(200);
  }

  const refused: readonly (readonly [string, unknown, string])[] = [
    ['7 characters (PASSWORD-1)', 'Aa1!aaa', 'must have at least 8 characters'],
    ['no upper-case letter (PASSWORD-1)', 'aa1!aaaa', 'must hold an upper-case letter'],
    ['no lower-case letter (PASSWORD-1)', 'AA1!AAAA', 'must hold a lower-case letter'],
    ['no digit (PASSWORD-1)', 'Aaa!aaaa', 'must hold a digit'],
    ['no special character (PASSWORD-1, PASSWORD-2)', 'Aa1aaaaa', 'must hold a special character'],
    ['a space for a special character (PASSWORD-2)', 'Aa1 aaaa', 'must hold a special character'],
    ['a letter for a special character (PASSWORD-2)', 'Aa1äaaaa', 'must hold a special character'],
    ['a common one (PASSWORD-20)', 'P@ssw0rd', 'is too easy to guess: it resembles a common password'],
    ['a word and a year (PASSWORD-20)', 'Summer-2026!', 'is too easy to guess'],
    ["the user's own name (PASSWORD-20)", 'Ada.Lovelace.1', 'is too easy to guess: without names of the account'],
    ["the organization's name (PASSWORD-20)", 'Example-Ltd-26!', 'is too easy to guess: without names of the account'],
    ['1,025 bytes (PASSWORD-3)', `Aa1!${'x'.repeat(1_021)}`, 'must have at most 1024 bytes'],
    ['1,027 bytes of 345 characters (PASSWORD-3)', `Aa1!${'€'.repeat(341)}`, 'must have at most 1024 bytes'],
    ['a million bytes (PASSWORD-3)', `Aa1!${'x'.repeat(1_000_000)}`, 'must have at most 1024 bytes'],
    ['a NUL (HTTP-13)', `${password}\0`, 'NUL'],
    ['a number', 12_345_678, 'must be a string'],
  ];

  it('400: what the rules forbid, in the words of the rule; the link still works and the password stays', async () => {
    const link = await mailedToken({ app, mails }, email);
    for (const [what, given, words] of refused) {
      const { status, body, text } = await app
        .with(link)
        .post('/userAccount/password/reset/token', { password: given });
      expect([status, body.error.code], what).toEqual([400, 'VALIDATION_ERROR']);
      expect(body.message, what).toContain(words);
      expect(text.includes(String(given)), what).toBe(false);
    }
    expect(await opens(app, email, password)).toBe(true);
    expect((await resetWith(app, link, password)).status).toBe(200);
  });

  it('413: more than a body may have (HTTP-11, PASSWORD-3)', async () => {
    const link = await mailedToken({ app, mails }, email);
    expect((await resetWith(app, link, `Aa1!${'x'.repeat(1_048_576)}`)).status).toBe(413);
    expect((await resetWith(app, link, password)).status).toBe(200);
  });

  it('200: twins that differ in byte 73, or in the last of 1,024, are two passwords (PASSWORD-3, PASSWORD-4)', async () => {
    for (const length of [72, 1_023]) {
      const common = `${password}${'x'.repeat(length - password.length)}`;
      await choose(`${common}A`);
      expect(await opens(app, email, `${common}A`)).toBe(true);
      expect(await opens(app, email, `${common}B`)).toBe(false);
      expect(await opens(app, email, common)).toBe(false);
    }
  });

  it('200: composed or decomposed, one password however the keyboard wrote it (PASSWORD-4)', async () => {
    const forms = ['NFC', 'NFD'].map((form) => 'Ångström-7é'.normalize(form));
    expect(new Set(forms).size).toBe(2);
    for (const given of forms) {
      await choose(given);
      for (const typed of forms) expect(await opens(app, email, typed)).toBe(true);
      expect(await opens(app, email, 'Angstrom-7e')).toBe(false);
    }
  });

  it('200: spaces at the ends, letters of any script and emoji count (PASSWORD-1, PASSWORD-4)', async () => {
    for (const given of [' Spaced-Out-7 ', 'Пароль-7п', 'Aa1👩‍🚀aaaa', 'Aa1!\tbcxq']) {
      await choose(given);
      expect(await opens(app, email, given), given).toBe(true);
      expect(await opens(app, email, `${given}x`), given).toBe(false);
    }
    expect(await opens(app, email, 'Spaced-Out-7')).toBe(false);
  });

  it('200: neither the password nor its hash is told anywhere (PASSWORD-5)', async () => {
    const secret = 'Never-To-Be-Told-7';
    const { text } = await resetWith(app, await mailedToken({ app, mails }, email), secret);
    const admin = app.with((await app.signInTokens(email, secret)).body.accessToken);
    const responses = [text];
    for (const path of ['/users', '/users/fetch/with-groups', '/org', '/users?search=ada']) {
      responses.push((await admin.get(path)).text);
    }
    const shown = JSON.stringify([responses, mails.mails, await app.events(), await app.audit(), app.logLines]);
    expect(shown).not.toMatch(/Never-To-Be-Told|argon2/);
  });
});
