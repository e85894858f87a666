import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { domainOf, emailAddress } from './email-address.ts';

/** The one spelling of an address; `null` where it is refused. */
function normalizeEmail(text: string): string | null {
  return emailAddress.safeParse(text).data ?? null;
}

describe('e-mail addresses', () => {
  it.each([
    ['Ann@Example.COM', 'ann@example.com'],
    ['  ann@example.com\n', 'ann@example.com'],
    ['\u3000ann@example.com\u00a0', 'ann@example.com'],
    ["a.b+tag_x~!#$%&'*/=?^`{|}-@example.com", "a.b+tag_x~!#$%&'*/=?^`{|}-@example.com"],
    ['ann@sub.example.co.uk', 'ann@sub.example.co.uk'],
    ['ann@bücher.example', 'ann@xn--bcher-kva.example'],
    ['ann@BÜCHER.example', 'ann@xn--bcher-kva.example'],
    ['ann@bu\u0308cher.example', 'ann@xn--bcher-kva.example'],
    ['ann@XN--BCHER-KVA.example', 'ann@xn--bcher-kva.example'],
    ['ann@ｅｘａｍｐｌｅ.ｃｏｍ', 'ann@example.com'],
    ['ann@example。com', 'ann@example.com'],
    ['ann@straße.example', 'ann@xn--strae-oqa.example'],
    ['\u212aate@example.com', 'kate@example.com'],
    ['ann@\u212aelvin.example', 'ann@kelvin.example'],
    [`${'a'.repeat(64)}@example.com`, `${'a'.repeat(64)}@example.com`],
  ])('%j is %j (USER-9)', (given, stored) => {
    expect(normalizeEmail(given)).toBe(stored);
  });

  it.each([
    ['nothing', ''],
    ['no @', 'ann.example.com'],
    ['no local part', '@example.com'],
    ['no domain', 'ann@'],
    ['a domain of one label', 'ann@localhost'],
    ['two @', 'ann@example.com@evil.io'],
    ['two addresses', 'victim,evil@evil.io'],
    ['two addresses, the other way', 'victim;evil@evil.io'],
    ['an address in angle brackets', 'x<evil@evil.io>'],
    ['a named address', 'Ann <evil@evil.io>'],
    ['a comment', 'a(c)b@x.io'],
    ['a comment in the domain', 'a@x.io(c)'],
    ['quotes', '"a b"@x.io'],
    ['an escaped @', 'victim\\@evil.io'],
    ['a group', 'group:a@x.io'],
    ['a route', '@relay.io:a@x.io'],
    ['a space', 'a b@x.io'],
    ['a line break', 'a@x.io\nBcc:evil@evil.io'],
    ['CR LF', 'a\r\nb@x.io'],
    ['NUL', 'a\0@x.io'],
    ['a tab', 'a\tb@x.io'],
    ['a dot at the start', '.a@x.io'],
    ['a dot at the end', 'a.@x.io'],
    ['two dots', 'a..b@x.io'],
    ['a dot at the end of the domain', 'a@x.io.'],
    ['an ideographic dot at the end', 'a@x.io。'],
    ['a dot at the start of the domain', 'a@.x.io'],
    ['two dots in the domain', 'a@x..io'],
    ['a hyphen at the start of a label', 'a@-x.io'],
    ['a hyphen at the end of a label', 'a@x-.io'],
    ['an underscore in the domain', 'a@x_y.io'],
    ['a label of 64', `a@${'x'.repeat(64)}.io`],
    ['a local part of 65', `${'a'.repeat(65)}@x.io`],
    ['an address by number', 'a@127.0.0.1'],
    ['an address by another number', 'a@0x7f.1'],
    ['an address in brackets', 'a@[127.0.0.1]'],
    ['a top-level domain of digits', 'a@example.123'],
    ['a percent sign in the domain', 'a@x%2eio'],
    ['a path after the domain', 'a@x.io/evil'],
    ['a query after the domain', 'a@x.io?evil'],
    ['a fragment after the domain', 'a@x.io#evil'],
    ['a full-width path after the domain', 'a@x.io／evil'],
    ['a sign that unfolds to a path', 'a@x.io℀'],
    ['a line break in the domain', 'a@x.\nio'],
    ['a tab in the domain', 'a@x\t.io'],
    ['an encoded letter in the domain', 'a@%78.io'],
    ['a port after the domain', 'a@x.io:25'],
    ['a user name in the domain', 'a@b:c@x.io'],
    ['a backslash in the domain', 'a@x\\.io'],
    ['letters beyond ASCII in the local part', 'ännä@x.io'],
    ['a full-width local part', 'ａｎｎ@x.io'],
    ['a dotless i', 'adm\u0131n@x.io'],
    ['a dotted capital I', 'adm\u0130n@x.io'],
    ['a long s', 'u\u017fer@x.io'],
    ['ß in the local part', 'straße@x.io'],
    ['a ligature', 'of\ufb01ce@x.io'],
    ['a zero-width space', 'a\u200bnn@x.io'],
    ['a soft hyphen', 'a\u00adnn@x.io'],
    ['a full-width @', 'ann＠x.io'],
    ['an override of direction', 'ann\u202e@x.io'],
    ['a lone surrogate', 'ann\ud800@x.io'],
    ['a lone surrogate in the domain', 'ann@x\ud800.io'],
    ['a broken punycode label', 'ann@xn--a.io'],
    ['255 octets', `a@${'b.'.repeat(125)}com`],
  ])('%s is refused (USER-11, USER-12)', (_, given) => {
    expect(normalizeEmail(given)).toBeNull();
  });

  it('254 octets are the most (USER-11)', () => {
    const most = `a@${'b.'.repeat(124)}info`;
    expect(Buffer.byteLength(most)).toBe(254);
    expect(normalizeEmail(most)).toBe(most);
    expect(normalizeEmail(`a${most}`)).toBeNull();
  });

  it.each([
    ['of one letter', 'a'.repeat(100_000)],
    ['with an @ in front', `@${'a.'.repeat(50_000)}`],
    ['of @', '@'.repeat(100_000)],
    ['of dots after an @', `a@${'.'.repeat(100_000)}`],
    ['of spaces', ' '.repeat(100_000)],
    ['of a.', `${'a.'.repeat(50_000)}@x.io`],
    ['of letters that grow', `a@${'ﷺ'.repeat(33_000)}.io`],
  ])('100,000 characters %s are refused quickly (USER-11)', (_, given) => {
    const startedMs = performance.now();
    expect(normalizeEmail(given)).toBeNull();
    expect(performance.now() - startedMs).toBeLessThan(50);
  });

  it('what comes out is plain, is its own one spelling, and is the same for any case', () => {
    const local = fc.string({ unit: fc.constantFrom(...Array.from('abcXYZ019._+-!ſıİKﬁß@ ,<>"()')) });
    const domain = fc.string({ unit: fc.constantFrom(...Array.from('abcXYZ019.-üßｅ。K_ ')) });
    fc.assert(
      fc.property(
        fc.oneof(
          fc.tuple(local, domain).map((parts) => parts.join('@')),
          fc.emailAddress(),
          fc.string(),
        ),
        (given) => {
          const stored = normalizeEmail(given);
          if (stored === null) return;
          expect(stored).toMatch(/^[a-z0-9!#$%&'*+/=?^_`{|}~.-]+@[a-z0-9-]+(\.[a-z0-9-]+)+$/);
          expect(normalizeEmail(stored)).toBe(stored);
          expect(normalizeEmail(` ${given}\t`)).toBe(stored);
          expect(given).toMatch(/^[^@]+@[^@]+$/);
        },
      ),
      { numRuns: 3_000 },
    );
  });

  it('the schema gives the one spelling, or one problem', () => {
    expect(emailAddress.parse(' Ann@Example.com')).toBe('ann@example.com');
    for (const wrong of ['x', '', 7, null, undefined, ['a@x.io'], { $ne: null }]) {
      expect(emailAddress.safeParse(wrong).error?.issues).toHaveLength(1);
    }
  });

  it('the domain is what stands after the @', () => {
    expect(domainOf('ann@sub.example.com')).toBe('sub.example.com');
  });
});
