import { describe, expect, it } from 'vitest';
import { foldCase } from '../../text/plain-text.ts';
import { idnPartsOf } from './user-search.ts';

const domains = ['xn--bcher-kva.example', 'mail.xn--bcher-kva.example', 'xn--strae-oqa.example', 'xn--r8jz45g.jp'];

describe('what stands in the store for a text in the Unicode form of an address (FIT-80)', () => {
  it.each<[string, readonly string[]]>([
    ['bücher', ['@xn--bcher-kva.example', '@mail.xn--bcher-kva.example']],
    ['BÜCH', ['@xn--bcher-kva.example', '@mail.xn--bcher-kva.example']],
    ['@bücher.ex', ['@xn--bcher-kva.example']],
    ['grace@bücher.example', ['grace@xn--bcher-kva.example']],
    ['straße', ['@xn--strae-oqa.example']],
    ['例え', ['@xn--r8jz45g.jp']],
    ['例え.com', []],
    ['über', []],
    ['a@b@bücher', ['a@b@xn--bcher-kva.example']],
  ])('%s', (text, parts) => {
    expect(idnPartsOf(foldCase(text), domains)).toEqual(parts);
  });
});
