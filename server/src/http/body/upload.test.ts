import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { boundary, bytesOf, disposition, formEnd, formOf, formType, part } from '../../../test/support/made-forms.ts';
import { ApiError } from '../../base/errors.ts';
import { readUpload, uploadBytesMax } from './upload.ts';

const fileBytesMax = 1_048_576;
/** The file as text, or the refusal's name and what it says of the file. Anything else is thrown on. */
async function read(form: Buffer, contentType = formType): Promise<string> {
  try {
    return Buffer.from((await readUpload(contentType, form)) ?? 'nothing').toString('latin1');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.details ? `${error.status} ${error.details[0]?.message}` : `${error.status} ${error.errorName}`;
  }
}

const noBoundary = '400 must be sent in a form with a boundary';
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

describe('the one file of a form (PICTURE-8)', () => {
  it('comes out as it went in, with every byte there is', async () => {
    const content = String.fromCharCode(...Array.from({ length: 256 }, (_, code) => code));
    expect(await read(formOf(part(content)))).toBe(content);
    expect(await read(formOf(part(`\r\n${content}\r\n--edg\r\n`)))).toBe(`\r\n${content}\r\n--edg\r\n`);
  });

  it.each([
    ['no line break at the end', bytesOf(part('PNG') + formEnd.trimEnd())],
    ['text before the first boundary', Buffer.concat([bytesOf('a preamble\r\n'), formOf(part('PNG'))])],
    ['a line break before the first boundary', Buffer.concat([bytesOf('\r\n'), formOf(part('PNG'))])],
    ['text after the last boundary', Buffer.concat([formOf(part('PNG')), bytesOf('an epilogue')])],
    ['no content type', formOf(part('PNG', disposition))],
    ['header names in small letters', formOf(part('PNG', disposition.toLowerCase()))],
    ['a name without quotes', formOf(part('PNG', 'Content-Disposition: form-data; name=file; filename=x'))],
    ['the file name first', formOf(part('PNG', 'Content-Disposition: form-data; filename="x"; name="file"'))],
    ['an encoded file name', formOf(part('PNG', `${disposition}; filename*=UTF-8''%2e%2e%2f%00`))],
    ['a file name in no known charset', formOf(part('PNG', `${disposition}; filename*=x'y'%ff%fe`))],
    ['a path for a file name', formOf(part('PNG', disposition.replace('p.png', '../../etc/passwd')))],
    ['a Windows path', formOf(part('PNG', disposition.replace('p.png', 'C:\\x.png')))],
    ['NUL in the file name', formOf(part('PNG', disposition.replace('p.png', 'a\0.png')))],
    ['no letters in the file name', formOf(part('PNG', disposition.replace('p.png', '')))],
    ['a file name of 10,000 letters', formOf(part('PNG', disposition.replace('p.png', 'x'.repeat(10_000))))],
    ['a second disposition, which does not count', formOf(part('PNG', disposition, 'Content-Disposition: none'))],
    ['an encoding, which is not undone', formOf(part('PNG', disposition, 'Content-Transfer-Encoding: base64'))],
    ['another type', formOf(part('PNG', disposition, 'Content-Type: text/html; charset=utf-16le'))],
    ['1,000 more headers', formOf(part('PNG', disposition, ...Array<string>(1_000).fill('X-A: b')))],
    ['a header of 1 MB', formOf(part('PNG', disposition, `X-A: ${'b'.repeat(fileBytesMax)}`))],
  ])('accepted: %s', async (_, form) => {
    expect(await read(form)).toBe('PNG');
  });

  it.each([
    ['two files', formOf(part('PNG'), part('PNG')), onlyPart],
    ['10,000 parts', formOf(...Array<string>(10_000).fill(part(''))), onlyPart],
    ['text after the file', formOf(part('PNG'), part('x', 'Content-Disposition: form-data; name="a"')), onlyPart],
    ['text before the file', formOf(part('x', 'Content-Disposition: form-data; name="a"'), part('PNG')), onlyPart],
    ['a part without a name beside it', formOf(part('PNG'), part('x', 'X: y')), onlyPart],
    ['a part without headers beside it', formOf(part('PNG'), `--${boundary}\r\n\r\nx\r\n`), onlyPart],
    ['half a part before it', formOf(`--${boundary}\r\nX: y\r\n`, part('PNG')), onlyPart],
    ['an attachment beside it', formOf(part('PNG'), part('x', 'Content-Disposition: attachment')), onlyPart],
    ['another form after the end', Buffer.concat([formOf(part('PNG')), formOf(part('PNG'))]), onlyPart],
    ['a file in another field', formOf(part('PNG', disposition.replace('"file"', '"photo"'))), noFile],
    ['a file in the field File', formOf(part('PNG', disposition.replace('"file"', '"File"'))), noFile],
    ['a file in a field without a name', formOf(part('PNG', 'Content-Disposition: form-data; filename="x"')), noFile],
    ['text in the field', formOf(part('PNG', 'Content-Disposition: form-data; name="file"')), noFile],
    ['much text in the field', formOf(part('x'.repeat(fileBytesMax), disposition.split(' file')[0] ?? '')), noFile],
    [
      'a form in the form',
      formOf(part(`--in\r\n${disposition}\r\n\r\nPNG\r\n--in--`, 'Content-Disposition: form-data; name="file"')),
      noFile,
    ],
    ['no part', bytesOf(formEnd), missing],
    ['a part without a disposition', formOf(part('PNG', 'Content-Type: image/png')), missing],
    ['a large part without a disposition', formOf(part('x'.repeat(fileBytesMax), 'X: y')), missing],
    ['another disposition', formOf(part('PNG', disposition.replace('form-data', 'attachment'))), missing],
    ['a line break in a name', formOf(part('PNG', disposition.replace('"file"', '"fi\nle"'))), missing],
    ['no headers', formOf(`--${boundary}\r\n\r\nPNG\r\n`), missing],
    ['the end within the headers', formOf(`--${boundary}\r\n${disposition}\r\n`), missing],
    ['no end', bytesOf(part('PNG')), incomplete],
    ['half of its end', bytesOf(`${part('PNG')}--${boundary}-`), incomplete],
    ['cut within the file', bytesOf(part('PNG').slice(0, -3)), incomplete],
    ['cut within a large file', bytesOf(part('x'.repeat(500_000))), incomplete],
    ['cut within a large part without a name', bytesOf(part('x'.repeat(500_000), 'X: y')), incomplete],
    ['cut within the headers', bytesOf(part('PNG').slice(0, 30)), incomplete],
    ['nothing but a boundary', bytesOf(`--${boundary}\r\n`), incomplete],
    ['no boundary at all', bytesOf('PNG'), incomplete],
    ['line feeds for line breaks', bytesOf((part('PNG') + formEnd).replaceAll('\r\n', '\n')), incomplete],
    ['another boundary', bytesOf((part('PNG') + formEnd).replaceAll(boundary, 'other')), incomplete],
  ])('refused: %s', async (_, form, error) => {
    expect(await read(form)).toBe(error);
  });

  it('an empty body is no body, whatever its type', async () => {
    for (const given of [formType, 'application/json', undefined]) {
      expect(await readUpload(given, Buffer.alloc(0))).toBeUndefined();
    }
  });

  it('an empty file is a file (PICTURE-11)', async () => {
    expect(await readUpload(formType, formOf(part('')))).toEqual(Buffer.alloc(0));
  });
});

describe('boundaries (PICTURE-8)', () => {
  it.each([
    'a',
    '-',
    '--',
    '-'.repeat(70),
    'x'.repeat(70),
    "A'()+_,-./:=?z",
    'a b',
    '----WebKitFormBoundary7MA4YWxkTrZu0gW',
    '----=_Part_1_2.3',
  ])('accepted: %j', async (odd) => {
    const form = Buffer.from(formOf(part('PNG')).toString('latin1').replaceAll(boundary, odd), 'latin1');
    expect(await read(form, `multipart/form-data; boundary="${odd}"`)).toBe('PNG');
  });

  it.each([
    `Multipart/Form-Data; BOUNDARY=${boundary}`,
    `multipart/form-data;boundary=${boundary};`,
    `multipart/form-data ; charset=utf-8; boundary=${boundary}`,
    `multipart/form-data; boundary="\\e\\dge"`,
    `multipart/form-data; boundary=${boundary}; boundary=other`,
    `multipart/form-data; x="; boundary=other"; boundary=${boundary}`,
  ])('accepted: %s', async (given) => {
    expect(await read(formOf(part('PNG')), given)).toBe('PNG');
  });

  it.each([
    ['none', ''],
    ['an empty one', '; boundary='],
    ['an empty one in quotes', '; boundary=""'],
    ['71 characters', `; boundary=${'x'.repeat(71)}`],
    ['a space at the end', '; boundary="x "'],
    ['what would be a pattern', '; boundary=".*"'],
    ['a quote', '; boundary="a\\"b"'],
    ['letters beyond ASCII', '; boundary="é"'],
    ['NUL', '; boundary="a\0b"'],
  ])('refused: %s', async (_, params) => {
    expect(await read(formOf(part('PNG')), `multipart/form-data${params}`)).toBe(noBoundary);
  });
});

describe('other kinds of body: 415 (PICTURE-8)', () => {
  it.each([
    ['nothing', ''],
    ['no subtype', 'multipart'],
    ['a longer name', 'multipart/form-dataX; boundary=edge'],
    ['two types', 'multipart/form-data, text/plain; boundary=edge'],
    ['multipart/mixed', 'multipart/mixed; boundary=edge'],
    ['multipart/related', 'multipart/related; boundary=edge'],
    ['an ordinary form', 'application/x-www-form-urlencoded'],
    ['JSON', 'application/json'],
    ['the picture itself', 'image/png'],
    ['a form as a parameter', 'text/plain; multipart/form-data; boundary=edge'],
    ['spaces without end', `multipart/form-data${' '.repeat(15_000)}; boundary=edge`],
    ['a parameter without end', `multipart/form-data; a=${'x'.repeat(15_000)}; boundary=edge`],
  ])('%s', async (_, given) => {
    expect(await read(formOf(part('PNG')), given)).toBe('415 bodyNotForm');
  });

  it('no type', async () => {
    await expect(readUpload(undefined, formOf(part('PNG')))).rejects.toMatchObject({ errorName: 'bodyNotForm' });
  });
});

describe('the size of a file (PICTURE-9)', () => {
  it('1,048,576 bytes are accepted, one more is 413', async () => {
    expect(await read(formOf(part('x'.repeat(fileBytesMax))))).toBe('x'.repeat(fileBytesMax));
    expect(await read(formOf(part('x'.repeat(fileBytesMax + 1))))).toBe('413 fileTooLarge');
    expect(await read(formOf(part('x'.repeat(fileBytesMax + 10_000))))).toBe('413 fileTooLarge');
  });

  it('the form around it has some kilobytes', () => {
    const form = formOf(part('x'.repeat(fileBytesMax), disposition.replace('p.png', 'x'.repeat(10_000))));
    expect(form.length).toBeLessThan(uploadBytesMax);
  });
});
