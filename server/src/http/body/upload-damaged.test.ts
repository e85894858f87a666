import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { boundary, bytesOf, disposition, formEnd, formOf, formType, part } from '../../../test/support/made-forms.ts';
import { ApiError } from '../../base/errors.ts';
import { readUpload } from './upload.ts';

/** The file as text, or the refusal's name and what it says of the file. Anything else is thrown on. */
async function read(form: Buffer, contentType = formType): Promise<string> {
  try {
    return Buffer.from((await readUpload(contentType, form)) ?? 'nothing').toString('latin1');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.details ? `${error.status} ${error.details[0]?.message}` : `${error.status} ${error.errorName}`;
  }
}

const incomplete = '400 must be sent in a form that is complete';
const onlyPart = '400 must be the only part of the form';
const missing = '400 is required';
const noFile = '400 is required: a file, in a field of this name';

// The guard against a parser that stops without a word.
const guard = vi.spyOn(AbortSignal, 'timeout');

/** It must never be what ends a form. */
function expectUnusedGuard(): void {
  for (const { value } of guard.mock.results) expect(value).toMatchObject({ aborted: false });
  guard.mockClear();
}
afterEach(expectUnusedGuard);
afterAll(() => guard.mockRestore());

describe('forms that are hard to read', () => {
  const filled = (text: string) => text.repeat(Math.floor(1_000_000 / text.length));
  const fillings = [
    '\r\n',
    '\r',
    '-',
    '\r\n--',
    '\r\n--edg',
    `\r\n--${boundary}`,
    `\r\n--${boundary}\r\n\r\nx`,
    'a:b\r\n',
    ' a\r\n',
    ';',
    '="',
    '\0',
  ];

  it.each(fillings)('a megabyte of %j, anywhere, comes to an end', async (text) => {
    const content = filled(text);
    const forms = [
      bytesOf(content),
      bytesOf(`${content}\r\n${part('PNG')}${formEnd}`),
      formOf(part(content)),
      formOf(part('PNG', disposition, content)),
      formOf(part('PNG', `${disposition}; a=${content}`)),
      Buffer.concat([formOf(part('PNG')), bytesOf(content)]),
    ];
    for (const form of forms) {
      const came = await read(form);
      expect(/^4\d\d /.test(came) || came.endsWith('PNG') || came === content).toBe(true);
    }
  });

  it('forms with changes at random: each is a file or a refusal', async () => {
    const valid = formOf(part(`PNG${'x'.repeat(70_000)}`));
    const headLength = valid.indexOf('\r\n\r\n') + 10;
    const places = fc.oneof(
      fc.nat(headLength),
      fc.nat(valid.length),
      fc.nat(30).map((back) => valid.length - back),
    );
    const texts = fc.constantFrom(
      '\r\n',
      '\r',
      '\n',
      '--edge',
      '--edge--',
      '\r\n--edge\r\n',
      '\r\n\r\n',
      '"',
      ';',
      '=',
      ':',
      '*',
      '\0',
      'charset*',
      'X',
    );
    const inserted = fc.oneof(texts, fc.string({ unit: 'binary-ascii', maxLength: 4 }));
    const change = fc.record({
      at: places,
      cut: fc.oneof(fc.constant(0), fc.nat(20), fc.constant(valid.length)),
      inserted,
    });
    const ends = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        const changed = changes.reduce(
          (form, { at, cut, inserted: more }) =>
            Buffer.concat([form.subarray(0, at), bytesOf(more), form.subarray(at + cut)]),
          valid,
        );
        const came = await read(changed);
        const kind = /^4\d\d /.test(came) ? came : 'a file';
        ends.set(kind, (ends.get(kind) ?? 0) + 1);
      }),
      { numRuns: 2_000 },
    );
    // Each end has to be met, or the changes prove nothing.
    expect([...ends.keys()].sort()).toEqual(expect.arrayContaining([incomplete, onlyPart, missing, noFile, 'a file']));
  });
});
