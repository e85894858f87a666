import { describe, expect, it } from 'vitest';
import { givenPassword, newPassword } from './password-rules.ts';

const problems = (text: string) => newPassword.safeParse(text).error?.issues.map(({ message }) => message) ?? [];

describe('newPassword', () => {
  it.each([
    'Aa1!aaaa',
    'Marble-Kettle-7',
    'Äü1€äüöß',
    'Ñandú_2026',
    'Zz9~ z z z',
    `Aa1!${'x'.repeat(1_020)}`,
    'Пароль-7п',
  ])('takes %j (PASSWORD-1, PASSWORD-2)', (text) => {
    expect(problems(text)).toEqual([]);
  });

  it.each([
    ['Aa1!aaa', 'must have at least 8 characters'],
    ['Aa1!aa\u0061\u0308'.normalize('NFD'), 'must have at least 8 characters'],
    ['aa1!aaaa', 'must hold an upper-case letter'],
    ['AA1!AAAA', 'must hold a lower-case letter'],
    ['Aaa!aaaa', 'must hold a digit'],
    ['Aa1aaaaa', 'must hold a special character'],
    ['Aa1 aaaa', 'must hold a special character'],
    ['Aa1\u00a0aaaa', 'must hold a special character'],
    ['Aa1\u0007aaaa', 'must hold a special character'],
    ['Aa1äaaaa', 'must hold a special character'],
    [`Aa1!${'x'.repeat(1_021)}`, 'must have at most 1024 bytes'],
    [`Aa1!${'€'.repeat(341)}`, 'must have at most 1024 bytes'],
  ])('refuses %j: %s (PASSWORD-1 to PASSWORD-3)', (text, problem) => {
    expect(problems(text)).toEqual([problem]);
  });

  it('tells all that is wrong at once', () => {
    expect(problems('')).toHaveLength(5);
  });
});

describe('givenPassword', () => {
  it('has no rule but a bound, so that older passwords still work', () => {
    expect(givenPassword.safeParse('x').success).toBe(true);
    expect(givenPassword.safeParse('x'.repeat(4_096)).success).toBe(true);
    expect(givenPassword.safeParse('x'.repeat(4_097)).success).toBe(false);
  });
});
