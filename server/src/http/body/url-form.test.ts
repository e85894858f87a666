import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../base/errors.ts';
import { isFormType, readForm } from './url-form.ts';

/** Parses a form, or returns the error text. */
function read(form: string | Buffer): unknown {
  try {
    return readForm(Buffer.from(form as string));
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.message;
    throw error;
  }
}

const refused = (field: string, message: string) => `The request is not valid. ${field}: ${message}`;
const twice = refused('body', 'must not name a field twice');
const notEncoded = refused('body', 'must be percent-encoded UTF-8');
const notUtf8 = refused('body', 'must be valid UTF-8');
const unstorable = 'must not hold NUL or unpaired surrogates';

describe('isFormType', () => {
  const form = 'application/x-www-form-urlencoded';
  it.each([
    form,
    form.toUpperCase(),
    `${form}; charset=utf-8`,
    `${form};charset=ISO-8859-1`,
    `${form} ;`,
    `${form}\t;x`,
  ])('takes %j, whose parameters mean nothing (HTTP-16)', (type) => expect(isFormType(type)).toBe(true));

  it.each([
    undefined,
    '',
    ` ${form}`,
    `${form}x`,
    `${form}, application/json`,
    `x${form}`,
    'multipart/form-data',
    'text/plain',
  ])('takes no %j (HTTP-16)', (type) => expect(isFormType(type)).toBe(false));
});

describe('readForm', () => {
  it.each([
    ['a=1&b=2', { a: '1', b: '2' }],
    ['a=b+c%20d%2B', { a: 'b c d+' }],
    ['a%3D=%3D=%26', { 'a=': '==&' }],
    ['a=%E2%82%AC&b=%f0%9f%94%91', { a: '€', b: '🔑' }],
    ['a=€', { a: '€' }],
    ['A=1&a=2', { A: '1', a: '2' }],
    ['&&a=1&', { a: '1' }],
    ['a=;b=2', { a: ';b=2' }],
    ['a[b]=1&a[]=2', { 'a[b]': '1', 'a[]': '2' }],
    ['toString=1&hasOwnProperty=2', { toString: '1', hasOwnProperty: '2' }],
    ['=x', { '': 'x' }],
    ['&', {}],
  ])('reads %j', (form, fields) => expect(read(form)).toEqual(fields));

  it('reads nothing of an empty body (HTTP-17)', () => expect(read('')).toBeUndefined());

  it.each(['a', 'a=', 'a&b='])('reads no field without a value, as RFC 6749 has it: %j', (form) => {
    expect(read(form)).toEqual({});
  });

  it.each([
    ['a=1&a=2', twice],
    ['a=1&%61=2', twice],
    ['a=&a=1', twice],
    ['a&a', twice],
    ['a=%', notEncoded],
    ['a=%zz', notEncoded],
    ['a%=1', notEncoded],
    ['a=%ff', notEncoded],
    ['a=%C0%80', notEncoded],
    ['a=%ED%A0%80', notEncoded],
    [Buffer.from([0x61, 0x3d, 0xff]), notUtf8],
    ['__proto__=1', refused('body.__proto__', 'is not allowed as a name')],
    ['__proto__=', refused('body.__proto__', 'is not allowed as a name')],
    ['%5f_proto__=1', refused('body.__proto__', 'is not allowed as a name')],
    ['constructor=1', refused('body.constructor', 'is not allowed as a name')],
    ['prototype=1', refused('body.prototype', 'is not allowed as a name')],
    ['a=%00', refused('body.a', unstorable)],
    ['a=\0', refused('body.a', unstorable)],
  ])('400: %j (HTTP-13, HTTP-15)', (form, message) => expect(read(form)).toBe(message));

  it('400: more than 50 fields, judged without reading them all', () => {
    const fields = (count: number) => Array.from({ length: count }, (_, place) => `f${place}=1`).join('&');
    expect(Object.keys(read(fields(50)) as object)).toHaveLength(50);
    const tooMany = refused('body', 'must have at most 50 fields');
    expect(read(fields(51))).toBe(tooMany);
    // What comes after the first one too many is not even decoded.
    expect(read(`${fields(50)}&%zz`)).toBe(tooMany);
    expect(read('&'.repeat(1_048_576))).toBe(tooMany);
  });

  it('makes nothing of a form that reaches for prototypes (HTTP-15)', () => {
    read('__proto__=x&a=1');
    read('__proto__[polluted]=x&constructor[prototype][polluted]=x');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('reads whatever fields anyone encodes, and refuses or reads any bytes at all (HTTP-13)', () => {
    const text = fc.string({ unit: 'binary', minLength: 1 }).filter((given) => !given.includes('\0'));
    const name = text.filter((given) => !['__proto__', 'constructor', 'prototype'].includes(given));
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(name, text), { selector: ([key]) => key, maxLength: 20 }), (fields) => {
        expect(read(new URLSearchParams(fields).toString()) ?? {}).toEqual(Object.fromEntries(fields));
      }),
    );
    const odd = fc.array(fc.constantFrom('a', 'b', '=', '&', '%', '+', '4', 'f', '0', '\xff', '__proto__'));
    fc.assert(
      fc.property(odd, (parts) => {
        expect(['object', 'undefined', 'string']).toContain(typeof read(Buffer.from(parts.join(''), 'latin1')));
      }),
      { numRuns: 2_000 },
    );
  });
});
