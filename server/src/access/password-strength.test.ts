import { describe, expect, it } from 'vitest';
import { weaknessOf, wordsOf } from './password-strength.ts';

const words = wordsOf(['Ada Lovelace', 'ada@analytical.example.com', 'Engines Ltd', null]);
const ownWords = /names of the account and its organization/;

describe('weaknessOf', () => {
  it.each([
    ['Password1!', /resembles a common password/],
    ['Welcome1!', /a common word/],
    ['Summer2026!', /a common word/],
    ['P@ssw0rd', /resembles a common password/],
    ['Aa1!aaaa', /too short for how regular it is/],
    ['Abc123456789!', /too short for how regular it is/],
    [`Aa1!${'x'.repeat(1_000)}`, /repeats one character/],
    ['Zz9~ z z z', /repeats a few characters/],
    ['Jennifer1987!', /common password/],
    ['Qwerty!23456', /common password/],
    // Long enough for the library, and all of it known beforehand.
    ['Password-2026!', ownWords],
    ['Summer-2026!', ownWords],
    ['Sommer-2026!', ownWords],
    ['Latchkey-2026!', ownWords],
    ['L4tchk3y-2026!', ownWords],
    ['Lovelace-Ada-1', ownWords],
    ['Ada-Lovelace-1815!', ownWords],
    ['Ada@Analytical-1', ownWords],
    ['Engines-Ltd-77', ownWords],
    ['3ng1n3$-Ltd-77', ownWords],
  ])('%s (PASSWORD-20)', async (password, reason) => {
    const said = await weaknessOf(password, words);
    expect(said).toMatch(reason);
    expect(said).toMatch(/^is too easy to guess: .*\. Three or four unrelated words/);
    expect(said).not.toContain(password);
  });

  it('a usual word, name or row with digits and signs around (PASSWORD-20)', async () => {
    const passwords =
      `Pass@word1 VMware1! India@123 Mumbai123! Rahul@123 Root1234! Toor1234! Ubuntu123! Linux123! Docker123! Kubernetes1!
    Github123! Gitlab123! Linkedin1! Christmas2026! Easter2026! Xmas2026! Berlin2026! Nov2026!! Fall2026!! Corona2020!
    Covid19!! Ww123456! !@#$1234Qq AAAAaaaa1111!!!! Tr0ub4dor&3 Correct-Horse-7 2026!Berlin B3rl1n-2026 Dublin#1999
    Priya@2024 Jenkins#321 Abcd1234!@#$ Qwer!@#$1234 Zz!!!!1111`.split(/\s+/u);
    const passed: string[] = [];
    for (const password of passwords) if ((await weaknessOf(password, [])) === null) passed.push(password);
    expect(passed).toEqual([]);
  });

  it.each([
    ['Marble-Kettle-7'],
    ['Brand-New-Horse-8'],
    ['Property-Understand-7'],
    ['xK9#mPq2'],
    ['Kj8#vL2$'],
    ['Пароль-7п'],
    ['Ångström-7é'],
    ['Canada-Prada-7!'],
    // One end is enough.
    [`Marble-Kettle-7${'x'.repeat(500)}`],
    [`${'x'.repeat(500)}Marble-Kettle-7`],
  ])('null: %s (PASSWORD-20)', async (password) => {
    expect(await weaknessOf(password, words)).toBeNull();
  });

  it('is the same for a password however the keyboard composed it', async () => {
    const [composed, decomposed] = ['NFC', 'NFD'].map((form) => 'Früh-ling-2026!'.normalize(form));
    expect(await weaknessOf(composed ?? '', words)).toBe(await weaknessOf(decomposed ?? '', words));
  });

  it('answers in bounded time whatever is asked, and holds no event loop meanwhile (PASSWORD-20)', async () => {
    const dear = ['4@8({[<6391!|70$5+2%', 'Aa1!', 'i1l!|', 'vv\\/\\/|\\||)(|3', '1', '2011-11-11'].map((part) =>
      part.repeat(300).slice(0, 1_024),
    );
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 1);
    const said = await Promise.all(dear.map((password) => weaknessOf(password, words)));
    clearInterval(timer);
    expect(said).toHaveLength(dear.length);
    expect(turns).toBeGreaterThan(5);
  });
});

describe('wordsOf', () => {
  it('takes names and addresses apart, in lower case, without what is shorter than three characters', () => {
    expect(wordsOf(['Ada  de Lovelace', null, 'A.Love-lace@Example.COM'])).toEqual([
      'ada',
      'lovelace',
      'love',
      'lace',
      'example',
      'com',
    ]);
  });
});
