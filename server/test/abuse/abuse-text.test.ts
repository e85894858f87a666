import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../support/test-app.ts';

/** Anything JavaScript calls a string: also halves of characters and what no keyboard has. */
const units = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 })
  .map((codes) => String.fromCharCode(...codes));
const oddities = [
  ['\0', '\n', '\r', '\t', '\x7f', '\x85', '\u2028', '\u202e', '\u2066', '\u200f', '\ud800', '\udc00'],
  [' ', '\u00a0', '\u3000', '\ufeff', '\u200b', '\u200d', '\u0301', 'e\u0301', '\u1100\u1161', 'ﬁ', 'ß', 'İ'],
  ['👩‍👩‍👧', '𝒳', "'", '"', '`', '\\', '%s', '%00', '{{7*7}}', '<b>', '--', ';', '\\u0000', 'Å', 'a', 'Z', '0'],
].flat();
const odd = fc.constantFrom(...oddities);
const mixed = fc.array(odd, { maxLength: 12 }).map((parts) => parts.join(''));
const texts = fc.oneof(
  units,
  mixed,
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'grapheme-composite', maxLength: 300, size: 'max' }),
  fc
    .tuple(fc.constantFrom('a', 'é', '𝒳', 'e\u0301'), fc.integer({ min: 250, max: 260 }))
    .map(([one, count]) => one.repeat(count)),
);

/** Returns the stored form of a name; `null` when it is rejected. Stated again here, from the rule. Rule: USER-13. */
function storedForm(given: string): string | null {
  const text = given.trim().normalize('NFC');
  const points = [...text].map((point) => point.codePointAt(0) ?? 0);
  const isRefused = (point: number) =>
    point < 0x20 ||
    (point >= 0x7f && point <= 0x9f) ||
    (point >= 0xd800 && point <= 0xdfff) ||
    [0x61c, 0x200e, 0x200f, 0x2028, 0x2029].includes(point) ||
    (point >= 0x202a && point <= 0x202e) ||
    (point >= 0x2066 && point <= 0x2069);
  return points.length < 1 || points.length > 255 || points.some(isRefused) ? null : text;
}

describe('H8: any text as a name', () => {
  let app: TestApp;
  let admin: Client;
  let count = 0;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  async function tryName(fullName: string): Promise<void> {
    count += 1;
    const { status, body } = await admin.post('/users', { fullName, email: `h8-${count}@example.com` });
    const expected = storedForm(fullName);
    expect(status).toBe(expected === null ? 400 : 201);
    if (expected === null) return;
    expect(body.fullName).toBe(expected);
    expect((await admin.get(`/users/${body._id}`)).body.fullName).toBe(expected);
  }

  it('is stored and returned exactly, in NFC and trimmed, or refused (USER-13)', async () => {
    await fc.assert(fc.asyncProperty(texts, tryName), { numRuns: 300 });
  });

  it.each([
    ['SQL', `Robert'); DROP TABLE users;--`],
    ['a template', '{{constructor.constructor("x")()}} <%= 7 %> #{7} $& $1 `'],
    ['a format string', '%s%n%x%p %(name)s {0} \\x41'],
    ['HTML', '<script>alert(1)</script><img src=x onerror=alert(1)>'],
    ['a path', '../../../../etc/passwd'],
    ['a look-up', '$\u007bjndi:ldap://127.0.0.1/a}'],
    ['a formula', '=HYPERLINK("http://evil.example")'],
    ['right-to-left letters', 'שלום عليكم'],
    ['an emoji of several code points', '👩🏽‍🚀 Ann'],
    ['the prototype', '__proto__'],
    ['null as a word', 'null'],
  ])('201: %s is a name like any other', async (_, name) => {
    await tryName(name);
    expect((await admin.get('/users')).body.at(-1).fullName).toBe(name);
  });

  it.each([
    ['CR LF', 'Ann\r\nBcc: evil@evil.example'],
    ['NUL', 'Ann\0'],
    ['an override of direction', 'Ann \u202egnp.exe'],
    ['a line separator', 'Ann\u2028Bob'],
    ['a terminal sequence', '\u001b[2JAnn'],
    ['10,000 combining marks', `a${'\u0301'.repeat(10_000)}`],
    ['255 letters and one', 'x'.repeat(256)],
    ['only spaces', ' \u3000\u00a0 '],
    ['nothing', ''],
  ])('400: %s', async (_, fullName) => {
    const { status, body } = await admin.post('/users', { fullName, email: 'refused@example.com' });
    expect([status, body.error.details[0].field]).toEqual([400, 'body.fullName']);
  });

  it('413: a name of 10 MB, quickly', async () => {
    const startedMs = performance.now();
    expect((await admin.post('/users', { fullName: 'x'.repeat(10_000_000), email: 'big@example.com' })).status).toBe(
      413,
    );
    expect(performance.now() - startedMs).toBeLessThan(2_000);
  });

  it('each request has one log line, whatever was in it', () => {
    for (const line of app.logLines) {
      expect(line.indexOf('\n')).toBe(line.length - 1);
      expect(() => JSON.parse(line)).not.toThrow();
    }
    const ids = app.logLines.map((line) => JSON.parse(line).requestId).filter(Boolean);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('the store is whole, and its events say the same', async () => {
    const users = (await admin.get('/users')).body.map(({ fullName }: { fullName: string }) => fullName);
    const told = (await app.events()).filter(({ event_type }) => event_type === 'userAdded');
    expect(told.map(({ payload }) => payload.fullName)).toEqual(users);
    expect(users.length).toBeGreaterThan(100);
  });
});
