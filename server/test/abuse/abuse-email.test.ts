import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp, type TestResponse } from '../support/test-app.ts';

const email = 'kate.fisk@example.com';

/** Other spellings of the address that mean the same mailbox. */
const same: readonly (readonly [string, string])[] = [
  ['itself', email],
  ['in upper case', email.toUpperCase()],
  ['with a Kelvin sign', '\u212aate.fis\u212a@example.com'],
  ['with spaces around it', ` \t${email}\u3000\u00a0`],
  ['with a byte order mark', `\ufeff${email}`],
  ['with a domain in full width', 'kate.fisk@ｅｘａｍｐｌｅ.ｃｏｍ'],
  ['with an ideographic dot', 'kate.fisk@example。com'],
  ['with a half-width dot', 'kate.fisk@example｡com'],
  ['with a soft hyphen in the domain', 'kate.fisk@exam\u00adple.com'],
  ['with a zero-width space at its end', `${email}\u200b`],
  ['with mathematical letters in the domain', 'kate.fisk@𝐞xample.com'],
];

/** Text that some software takes for the address, and ours rejects. */
const none: readonly (readonly [string, string])[] = [
  ['a full-width local part', 'ｋａｔｅ.fisk@example.com'],
  ['a full-width at', 'kate.fisk＠example.com'],
  ['a dotless i', 'kate.f\u0131sk@example.com'],
  ['a dotted capital I', 'kate.f\u0130sk@example.com'],
  ['a long s', 'kate.fi\u017fk@example.com'],
  ['a ligature', 'kate.\ufb01sk@example.com'],
  ['a Cyrillic letter', 'k\u0430te.fisk@example.com'],
  ['a sharp s', 'kate.fi\u00dfk@example.com'],
  ['an accent that follows', 'kate\u0301.fisk@example.com'],
  ['a zero-width space', 'kate\u200b.fisk@example.com'],
  ['a soft hyphen', 'kate\u00ad.fisk@example.com'],
  ['a dot at the end of the domain', `${email}.`],
  ['a dot at the end of the local part', 'kate.fisk.@example.com'],
  ['two dots', 'kate..fisk@example.com'],
  ['quotes', '"kate.fisk"@example.com'],
  ['a comment', 'kate.fisk(x)@example.com'],
  ['a comment in the domain', 'kate.fisk@(x)example.com'],
  ['a space within', 'kate.fisk @example.com'],
  ['a name in front', 'Kate <kate.fisk@example.com>'],
  ['a second address', 'kate.fisk@example.com,evil@evil.example'],
  ['a line break and a header', 'kate.fisk@example.com\r\nBcc: evil@evil.example'],
  ['an escape', 'kate.fisk@ex%61mple.com'],
  ['a route', '<@evil.example:kate.fisk@example.com>'],
  ['a percent hack', 'kate.fisk@example.com@evil.example'],
  ['NUL', 'kate.fisk@example.com\0'],
  ['a port', 'kate.fisk@example.com:25'],
  ['a path', 'kate.fisk@example.com/x'],
  ['mailto', 'mailto:kate.fisk@example.com'],
];

describe('N3: one address in every disguise is one account or none (USER-9, USER-10, USER-12)', () => {
  let app: TestApp;
  let admin: Client;
  let other: Json;
  let holder: Json;
  let count = 0;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    other = (await admin.post('/users', { fullName: 'Other', email: 'other@example.com' })).body;
    holder = (await admin.post('/users', { fullName: 'Kate', email })).body;
  });
  afterAll(() => app.close());

  /** All requests that would give the address to another user. */
  const ways = (given: string): Promise<TestResponse>[] => {
    count += 1;
    return [
      admin.post('/users', { fullName: `New ${count}`, email: given }),
      admin.patch(`/users/${other._id}/email`, { email: given }),
      admin.put(`/users/${other._id}`, { email: given, designation: `Other ${count}` }),
    ];
  };
  const users = async () => {
    const rows = await app.services.db.read.selectFrom('users').orderBy('id').select(['id', 'email']).execute();
    return rows.map((row) => row.email);
  };
  const statuses = async (responses: readonly Promise<TestResponse>[]) =>
    (await Promise.all(responses)).map(({ status }) => status);

  describe.each(['active', 'deleted'])('anyone who has it is %s', (state) => {
    beforeAll(async () => {
      if (state === 'deleted') await admin.delete(`/users/${holder._id}`);
    });
    afterAll(async () => {
      if (state === 'deleted') await admin.post(`/users/${holder._id}/restore`);
    });

    it.each(same)('409: %s', async (_, given) => {
      const before = await users();
      expect(await statuses(ways(given))).toEqual([409, 409, 409]);
      expect(await users()).toEqual(before);
      const found = await app.service().get(`/users/email/exists?email=${encodeURIComponent(given)}`);
      expect(found.body).toMatchObject([{ _id: holder._id, email, isDeleted: state === 'deleted' }]);
    });

    it.each(none)('400: %s', async (_, given) => {
      const before = await users();
      expect(await statuses(ways(given))).toEqual([400, 400, 400]);
      expect(await users()).toEqual(before);
    });
  });

  it.each(same)('200: of the holder it stays the address, %s', async (_, given) => {
    const path = `/users/${holder._id}`;
    for (const response of [
      await admin.patch(`${path}/email`, { email: given }),
      await admin.put(path, { email: given }),
    ]) {
      expect([response.status, response.body.email]).toEqual([200, email]);
    }
  });

  const disguise = fc
    .array(
      fc.tuple(fc.nat(), fc.constantFrom('\u200b', '\u00ad', '\u0301', 'K', '\u212a', 'ｅ', '.', '@', ' ', '。', 'ı')),
      {
        maxLength: 4,
      },
    )
    .map((changes) => {
      const points = email.split('');
      for (const [place, piece] of changes) points.splice(place % (points.length + 1), place % 2, piece);
      return points.join('');
    });

  it('whatever is done to it, no two accounts differ in case or width alone, and each address is its own spelling', async () => {
    await fc.assert(
      fc.asyncProperty(disguise, async (given) => {
        for (const { status, body } of await Promise.all(ways(given))) {
          expect([200, 201, 400, 409]).toContain(status);
          expect(status < 300 ? body.email : 'none').toMatch(/^[a-z0-9.@-]+$/);
        }
        const stored = await users();
        expect(new Set(stored.map((one) => one.normalize('NFKC').toLowerCase())).size).toBe(stored.length);
        expect(stored.filter((one) => one === email)).toHaveLength(1);
      }),
      { numRuns: 100 },
    );
  });
});
