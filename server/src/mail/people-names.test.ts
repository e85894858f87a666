import { describe, expect, it } from 'vitest';
import { hello, withoutLinks } from './people-names.ts';

describe('names in mails (MAIL-14)', () => {
  it.each([
    ['Boss, your salary letter: https://evil.example/login', 'Boss, your salary letter: evil example login'],
    ['Ada evil.example', 'Ada evil example'],
    ['Ada www.evil.example', 'Ada www evil example'],
    ['Ada evil.example:8443/x?y#z', 'Ada 8443 x?y#z'],
    ['Ada EVIL。example', 'Ada EVIL example'],
    ['Ada xn--e1afmkfd.xn--p1ai', 'Ada xn--e1afmkfd xn--p1ai'],
    ['Ada пример.рф', 'Ada пример рф'],
    ['mailto:eve@evil.example', 'eve evil example'],
    ['Ada eve@evil', 'Ada eve evil'],
    ['Ada javascript:alert(1)', 'Ada alert(1)'],
    ['Ada \\\\evil\\share', 'Ada evil share'],
    ['call +44 20 7946 0001 now', 'call now'],
    ['call 0800-123456', 'call'],
    ['https://', ''],
  ])('%s is shown as %j, and greeted without', (name, shown) => {
    expect(withoutLinks(name)).toBe(shown);
    expect(hello(name).words.join(' ').trim()).toBe('Hello,');
  });

  it.each([
    'Ada Lovelace',
    'J.R.R. Tolkien',
    'Dr. Grace B. M. Hopper, Ph.D.',
    "Miles O'Brien",
    'Jean-Luc Picard (Ops)',
    'Анна-Мария 李小龙',
    'Agent 007',
    'Title: Boss',
  ])('%s stays', (name) => {
    expect(withoutLinks(name)).toBe(name);
    expect(hello(name).words.join(' ')).toContain(name);
  });
});
