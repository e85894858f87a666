import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { id, idResponse, jsonSchema, needed, queryNumber, timestamp } from './schemas.ts';

describe('an id (HTTP-19, HTTP-20)', () => {
  it('is taken in either case, as lower case', () => {
    expect(id.parse('0123456789ABCDEFabcdef01')).toBe('0123456789abcdefabcdef01');
  });

  const hex = 'a'.repeat(24);
  it.each([
    ['23 digits', hex.slice(1)],
    ['25 digits', `${hex}a`],
    ['a letter beyond f', `${hex.slice(1)}g`],
    ['a line break at the end', `${hex}\n`],
    ['a space before', ` ${hex}`],
    ['NUL', `${hex.slice(1)}\0`],
    // Lower-casing turns neither into an ASCII letter.
    ['the Kelvin sign', `${hex.slice(1)}\u212a`],
    ['İ', `${hex.slice(1)}\u0130`],
    ['full-width digits', '１'.repeat(24)],
    ['nothing', ''],
    ['a number', 123_456_789_012],
    ['a list', [hex]],
  ])('is not %s', (_, given) => {
    expect(id.safeParse(given).success).toBe(false);
  });
});

describe('a whole number in the query (HTTP-21)', () => {
  const number = queryNumber({ min: 0, max: 999_999_999 });

  it('is read of plain digits', () => {
    expect(['0', '7', '100', '999999999'].map((given) => number.parse(given))).toEqual([0, 7, 100, 999_999_999]);
  });

  it.each(['', '-0', '00', '1_000', '1,000', '1e3', '1.0', '0x10', ' 1', '1\n', '１', '9999999999', '9'.repeat(400)])(
    'is not %j',
    (given) => {
      expect(number.safeParse(given).success).toBe(false);
    },
  );

  it('is documented as a number, within its bounds', () => {
    const { properties } = jsonSchema(z.object({ page: queryNumber({ min: 1, max: 9 }).optional() }), 'input');
    expect(properties).toEqual({ page: { type: 'integer', minimum: 1, maximum: 9 } });
  });
});

describe('JSON Schema', () => {
  it('has ids and moments with their form', () => {
    expect(jsonSchema(idResponse, 'output')).toEqual({ type: 'string', pattern: '^[a-f0-9]{24}$' });
    expect(jsonSchema(timestamp, 'output')).toEqual({ type: 'string', format: 'date-time' });
  });

  it('of what is sent requires what is needed, though its absence is refused elsewhere', () => {
    const schema = z.object({ must: z.string(), need: needed(z.string()), may: z.string().optional() });
    expect(schema.safeParse({ must: 'x' }).success).toBe(true);
    expect(jsonSchema(schema, 'input')['required']).toEqual(['must', 'need']);
    expect(jsonSchema(schema, 'output')['required']).toEqual(['must']);
    expect(jsonSchema(z.object({ a: needed(z.string()) }), 'input')['required']).toEqual(['a']);
    // What is made of it is an ordinary optional input again.
    expect(jsonSchema(z.object({ a: needed(z.string()).describe('x') }), 'input')['required']).toBeUndefined();
  });

  it('shows examples of what is sent, also where the value is changed once it is here', () => {
    const schema = z
      .string()
      .transform(Number)
      .meta({ examples: ['7'] });
    expect(jsonSchema(schema, 'input')).toMatchObject({ type: 'string', examples: ['7'] });
  });

  it('of an answer drops what is not declared, and says so', () => {
    expect(jsonSchema(z.object({ a: z.string() }), 'output')).toMatchObject({ additionalProperties: false });
    expect(jsonSchema(z.object({ a: z.string() }), 'input')).not.toHaveProperty('additionalProperties');
  });
});
