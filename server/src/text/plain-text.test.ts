import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  address,
  clearableAddress,
  clearableMobile,
  clearableText,
  foldCase,
  optionalMobile,
  optionalText,
  plainText,
  searchText,
  storedAddress,
  toAddress,
} from './plain-text.ts';

const text = plainText();
const refused = (given: unknown) => text.safeParse(given).error?.issues.length;

describe('plain text (USER-13)', () => {
  it.each([
    ['Ann', 'Ann'],
    ['  Ann  ', 'Ann'],
    ['\n\tAnn\r\n', 'Ann'],
    ['\ufeffAnn\u3000', 'Ann'],
    ['A\u030a', '\u00c5'],
    ['\u212b', '\u00c5'],
    ['\u1112\u1161\u11ab', '\ud55c'],
    ['ﬁ', 'ﬁ'],
    ['שלום', 'שלום'],
    ['👩‍👩‍👧', '👩‍👩‍👧'],
    ['a  b', 'a  b'],
    ['x'.repeat(255), 'x'.repeat(255)],
    ['𝒳'.repeat(255), '𝒳'.repeat(255)],
    ['e\u0301'.repeat(255), '\u00e9'.repeat(255)],
    [`${' '.repeat(500)}x`, 'x'],
  ])('%j is taken as %j', (given, taken) => {
    expect(text.parse(given)).toBe(taken);
  });

  it.each([
    ['nothing', ''],
    ['only spaces', ' \t\n\u00a0\u3000'],
    ['256 letters', 'x'.repeat(256)],
    ['256 code points of two units', '𝒳'.repeat(256)],
    ['256 code points after NFC', 'e\u0301'.repeat(256)],
    ['NUL', 'a\0b'],
    ['NUL at the end', 'a\0'],
    ['a line break', 'a\nb'],
    ['CR', 'a\rb'],
    ['a tab', 'a\tb'],
    ['DEL', 'a\x7f'],
    ['a C1 control', 'a\x85b'],
    ['ESC', '\x1b[2J'],
    ['a line separator', 'a\u2028b'],
    ['a paragraph separator', 'a\u2029b'],
    ['a high surrogate alone', 'a\ud800'],
    ['a low surrogate alone', '\udc00a'],
    ['surrogates the wrong way round', '\udc00\ud800'],
  ])('%s is refused', (_, given) => {
    expect(refused(given)).toBeGreaterThan(0);
  });

  it.each([0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069])(
    'a mark of direction is refused anywhere: U+%i',
    (code) => {
      const mark = String.fromCodePoint(code);
      for (const given of [`${mark}Ann`, `An${mark}n`, `Ann${mark}`, mark]) expect(refused(given)).toBeGreaterThan(0);
    },
  );

  it('no other type is taken', () => {
    for (const given of [7, true, null, undefined, ['Ann'], { toString: () => 'Ann' }]) expect(refused(given)).toBe(1);
  });

  it('bounds are counted in code points, both included', () => {
    const two = plainText({ min: 2, max: 3 });
    expect(['a', 'ab', 'abc', 'abcd', '𝒳𝒳', '𝒳𝒳𝒳𝒳'].map((given) => two.safeParse(given).success)).toEqual([
      false,
      true,
      true,
      false,
      true,
      false,
    ]);
  });

  it('a million characters are refused quickly', () => {
    for (const given of ['x', '\u0301', '\u0344', ' ', '\ud800'].map((unit) => unit.repeat(1_000_000))) {
      const startedMs = performance.now();
      expect(refused(given)).toBeGreaterThan(0);
      expect(performance.now() - startedMs).toBeLessThan(200);
    }
  });

  it('what was taken is taken again unchanged', () => {
    const anything = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme-composite' }), fc.string());
    fc.assert(
      fc.property(anything, (given) => {
        const first = text.safeParse(given);
        if (!first.success) return;
        expect(first.data).toBe(given.trim().normalize('NFC').trim());
        expect(text.parse(first.data)).toBe(first.data);
        expect(first.data.length).toBeGreaterThan(0);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe('optional fields', () => {
  it('null, "" and spaces are no text (USER-29)', () => {
    expect([null, '', '  ', undefined].map((given) => optionalText.parse(given))).toEqual([null, null, null, null]);
    expect(optionalText.parse(' x ')).toBe('x');
    expect([7, [], {}, 'a\nb', 'x'.repeat(256)].map((given) => optionalText.safeParse(given).success)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ]);
  });

  it('a telephone number is 10 to 15 digits, with or without a + (USER-8)', () => {
    const taken = ['1234567890', '+1234567890', '123456789012345', '+123456789012345'];
    expect(taken.map((given) => optionalMobile.parse(given))).toEqual(taken);
    expect([null, '', undefined].map((given) => optionalMobile.parse(given))).toEqual([null, null, null]);
    const wrong = [
      '123456789',
      '1234567890123456',
      '+',
      '++1234567890',
      '12345 67890',
      '١٢٣٤٥٦٧٨٩٠',
      '1234567890\n',
      ' 1234567890',
      1234567890,
    ];
    expect(wrong.filter((given) => optionalMobile.safeParse(given).success)).toEqual([]);
  });

  it('an address keeps the known lines and drops others (USER-30)', () => {
    expect(address.parse({ city: ' Paris ', postCode: '', state: null, role: 'admin' })).toEqual({ city: 'Paris' });
    expect(address.safeParse({ city: 7 }).success).toBe(false);
    expect(address.safeParse({ city: 'a\u202eb' }).success).toBe(false);
    expect(address.safeParse([]).success).toBe(false);
  });
});

describe('foldCase (USER-16)', () => {
  const everyCharacter = Array.from({ length: 0x110000 }, (_, point) => point)
    .filter((point) => point < 0xd800 || point > 0xdfff)
    .map((point) => String.fromCodePoint(point).normalize('NFC'));

  it('makes every character one with its upper case, its lower case and its other normal form', () => {
    const folded = new Set<string>();
    const differing = everyCharacter.filter((character) => {
      const fold = foldCase(character);
      folded.add(fold);
      const others = [character.toUpperCase(), character.toLowerCase(), character.normalize('NFD'), fold];
      return others.some((other) => foldCase(other.normalize('NFC')) !== fold);
    });
    expect(differing).toEqual([]);
    // It tells nearly all characters apart still.
    expect(folded.size).toBeGreaterThan(1_100_000);
  });

  it.each([
    ['ΟΔΥΣΣΕΎΣ', 'οδυσσεύς'],
    ['STRASSE', 'straße'],
    ['STRAẞE', 'straße'],
    ['İSTANBUL', 'istanbul'],
    ['ISPARTA', 'ısparta'],
    ['ǄUNGLA', 'ǅungla'],
  ])('%s is %s', (one, other) => {
    expect(foldCase(one)).toBe(foldCase(other));
  });

  it.each([
    ['é', 'e'],
    ['Å', 'A'],
    ['ё', 'е'],
    ['ñ', 'n'],
  ])('%s is not %s', (one, other) => {
    expect(foldCase(one)).not.toBe(foldCase(other));
  });
});

describe('fields that may be cleared (USER-29)', () => {
  const taken = (schema: typeof clearableText | typeof clearableMobile | typeof clearableAddress, given: unknown) => {
    const { success, data } = schema.safeParse(given);
    return success ? data : 'refused';
  };

  it.each([
    ['null', null, null],
    ['nothing', '', null],
    ['spaces', ' \u3000 ', null],
    ['a text', ' x ', 'x'],
    ['0, which is a text', '0', '0'],
    ['absence, which is no wish', undefined, 'refused'],
    ['a number', 0, 'refused'],
    ['false', false, 'refused'],
    ['a list', [], 'refused'],
    ['a line break', 'a\nb', 'refused'],
    ['256 characters', 'x'.repeat(256), 'refused'],
  ])('text: %s', (_, given, expected) => {
    expect(taken(clearableText, given)).toBe(expected);
  });

  it.each([
    ['null', null, null],
    ['nothing', '', null],
    ['spaces', '  ', 'refused'],
    ['a number as text', '+441234567890', '+441234567890'],
    ['a + alone', '+', 'refused'],
    ['a number', 441_234_567_890, 'refused'],
    ['absence', undefined, 'refused'],
  ])('telephone number: %s', (_, given, expected) => {
    expect(taken(clearableMobile, given)).toBe(expected);
  });

  it.each([
    ['null', null, null],
    ['nothing', '', null],
    ['spaces', ' ', 'refused'],
    ['lines', { city: ' Rome ' }, { city: 'Rome' }],
    ['no lines', {}, {}],
    [
      'lines that are empty, or null (USER-29)',
      { city: '', state: ' ', country: null, postCode: '1' },
      { postCode: '1' },
    ],
    ['a list', [], 'refused'],
    ['a text', 'Rome', 'refused'],
    ['false', false, 'refused'],
    ['absence', undefined, 'refused'],
  ])('address: %s (USER-30)', (_, given, expected) => {
    expect(taken(clearableAddress, given)).toEqual(expected);
  });

  it('an address comes out of the store as it went in, and none as none', () => {
    for (const given of [{}, { city: 'Rome' }, { addressLine1: '"1" \\ Straße', postCode: '0' }]) {
      expect(toAddress(storedAddress(given))).toEqual(given);
    }
    expect([storedAddress(null), storedAddress(undefined), toAddress(null)]).toEqual([null, null, undefined]);
  });
});

describe('what a list is searched for (USER-16)', () => {
  it.each([
    [undefined, undefined],
    ['', ''],
    ['   ', ''],
    ['  ÅSA Straße ', 'åsa strasse'],
    ['100%_\\', '100%_\\'],
    ['a\u0308', 'ä'],
  ])('%j is %j', (given, folded) => {
    expect(searchText.parse(given)).toBe(folded);
  });

  it.each([['a\0'], ['a\nb'], ['a\u202eb'], ['x'.repeat(256)], [null], [7], [['a', 'b']]])('%j is refused', (given) => {
    expect(searchText.safeParse(given).success).toBe(false);
  });
});
