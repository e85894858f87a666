import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { problemsOf, wording } from './input.ts';

const schema = z.object({
  text: z.string(),
  count: z.number().min(2).max(3),
  flag: z.boolean(),
  list: z.array(z.string().min(1).max(3)).min(2).max(3),
  single: z.array(z.string()).min(1),
  nested: z.object({}),
  kind: z.enum(['individual', 'business']),
  only: z.literal('password'),
  own: z.string('has words of its own'),
  either: z.union([z.string(), z.number()]),
});
const right = {
  text: '',
  count: 2,
  flag: true,
  list: ['a', 'b'],
  single: ['a'],
  nested: {},
  kind: 'business',
  only: 'password',
  own: '',
  either: 1,
};

function messagesFor(given: unknown) {
  const { error } = schema.safeParse(given, { error: wording });
  return error ? problemsOf('body', error).map(({ message }) => message) : [];
}

describe('what is said of input that breaks a schema (ERR-3)', () => {
  it.each([
    [{ text: undefined }, 'is required'],
    [{ kind: undefined }, 'is required'],
    [{ text: null }, 'must be a string'],
    [{ text: 7 }, 'must be a string'],
    [{ text: ['a'] }, 'must be a string'],
    [{ text: {} }, 'must be a string'],
    [{ count: '2' }, 'must be a number'],
    [{ count: 1 }, 'must be at least 2'],
    [{ count: 4 }, 'must be at most 3'],
    [{ flag: 'true' }, 'must be a boolean'],
    [{ list: 'a' }, 'must be an array'],
    [{ list: ['a'] }, 'must have at least 2 items'],
    [{ list: ['a', 'b', 'c', 'd'] }, 'must have at most 3 items'],
    [{ list: ['a', ''] }, 'must not be empty'],
    [{ list: ['a', 'long'] }, 'must have at most 3 characters'],
    [{ single: [] }, 'must not be empty'],
    [{ nested: [] }, 'must be an object'],
    [{ kind: 'other' }, 'must be one of individual, business'],
    [{ only: 'other' }, 'must be password'],
    [{ own: 7 }, 'has words of its own'],
    [{ either: true }, 'is not valid'],
  ])('%j %s', (wrong, message) => {
    expect(messagesFor({ ...right, ...wrong })).toEqual([message]);
  });

  it('all that is wrong, each with its field', () => {
    const { error } = schema.safeParse({ ...right, text: 7, list: ['long', ''] }, { error: wording });
    expect(error && problemsOf('body', error)).toEqual([
      { field: 'body.text', message: 'must be a string' },
      { field: 'body.list.0', message: 'must have at most 3 characters' },
      { field: 'body.list.1', message: 'must not be empty' },
    ]);
  });

  it('nothing of what is right', () => {
    expect(messagesFor(right)).toEqual([]);
  });
});
