import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { updatedPayload } from '../../outbox/updated-user.ts';
import { newUserRow, type StoredUser } from './user.ts';
import { applyChange, fieldBodies, type UserChange, wholeBody } from './user-change.ts';

const createdMs = 1_000;
const nowMs = 2_000;
const account = { id: 'a'.repeat(24), orgId: 'b'.repeat(24), slug: 'user-1007', email: 'ada@example.com' };
const plain = newUserRow({ ...account, fullName: 'Ada Lovelace' }, createdMs);

/** A user with these first and last names, whose full name is made of them unless another is named. */
function named(first: string | null, last: string | null, full?: string): StoredUser {
  const fullName = full ?? [first, last].filter(Boolean).join(' ');
  return { ...plain, first_name: first, last_name: last, full_name: fullName };
}

const bySession = { nowMs, verifies: true };
const byUser = { nowMs, verifies: false };
const fullNameAfter = (before: StoredUser, change: UserChange) => applyChange(before, change, bySession).full_name;

describe('the full name after a change (USER-32)', () => {
  it.each<[string, StoredUser, [UserChange, string]]>([
    ['follows the first name', named('Ada', 'Lovelace'), [{ firstName: 'Augusta' }, 'Augusta Lovelace']],
    ['follows the last name', named('Ada', 'Lovelace'), [{ lastName: 'King' }, 'Ada King']],
    ['follows both', named('Ada', 'Lovelace'), [{ firstName: 'Grace', lastName: 'Hopper' }, 'Grace Hopper']],
    ['follows a first name that is cleared', named('Ada', 'Lovelace'), [{ firstName: null }, 'Lovelace']],
    ['follows a last name that is cleared', named('Ada', 'Lovelace'), [{ lastName: null }, 'Ada']],
    ['stays when both are cleared', named('Ada', 'Lovelace'), [{ firstName: null, lastName: null }, 'Ada Lovelace']],
    ['follows a last name beside a first name alone', named('Ada', null), [{ lastName: 'King' }, 'Ada King']],
    ['follows a first name alone', named('Ada', null), [{ firstName: 'Augusta' }, 'Augusta']],
    ['follows a last name alone', named(null, 'Lovelace'), [{ lastName: 'King' }, 'King']],
    ['stays when the only name is cleared', named('Ada', null), [{ firstName: null }, 'Ada']],
    ['stays where it was made of nothing', named(null, null, 'Ada'), [{ firstName: 'Grace' }, 'Ada']],
    ['stays where it is another', named('Ada', 'Lovelace', 'Countess'), [{ lastName: 'King' }, 'Countess']],
    ['stays in other letters', named('Ada', 'Lovelace', 'ADA LOVELACE'), [{ lastName: 'King' }, 'ADA LOVELACE']],
    ['stays with a middle name', named('Ada', 'Lovelace', 'Ada B Lovelace'), [{ lastName: 'King' }, 'Ada B Lovelace']],
    ['stays in another order', named('Ada', 'Lovelace', 'Lovelace Ada'), [{ lastName: 'King' }, 'Lovelace Ada']],
    ['is what is given, whatever else is', named('Ada', 'Lovelace'), [{ fullName: 'X', lastName: 'Y' }, 'X']],
    [
      'stays with anything else',
      named('Ada', 'Lovelace'),
      [{ designation: 'Countess', middleName: 'B' }, 'Ada Lovelace'],
    ],
    [
      'stays with the same names',
      named('Ada', 'Lovelace'),
      [{ firstName: 'Ada', lastName: 'Lovelace' }, 'Ada Lovelace'],
    ],
  ])('%s', (_, before, [change, expected]) => {
    const after = applyChange(before, change, bySession);
    expect(after.full_name).toBe(expected);
    expect(after.name_key).toBe(expected.toLowerCase());
  });

  it('is counted in code points: 255 of them are enough, whatever they take (USER-13)', () => {
    const before = named('𝒜'.repeat(127), 'L');
    expect([...fullNameAfter(before, { lastName: '𝓛'.repeat(127) })].length).toBe(255);
  });

  it.each<[string, UserChange]>([
    ['body.firstName', { firstName: 'x'.repeat(255) }],
    ['body.lastName', { lastName: 'x'.repeat(255) }],
    ['body.firstName', { firstName: 'x'.repeat(200), lastName: 'y'.repeat(200) }],
  ])('400: %s, too long together with the other one (USER-13)', (field, change) => {
    expect(() => applyChange(named('Ada', 'Lovelace'), change, bySession)).toThrow(
      expect.objectContaining({
        status: 400,
        code: 'VALIDATION_ERROR',
        details: [expect.objectContaining({ field })],
      }),
    );
  });

  it('may be apart from names that are too long together (USER-32)', () => {
    const long = 'x'.repeat(255);
    expect(fullNameAfter(named('Ada', 'Lovelace', 'Countess'), { firstName: long, lastName: long })).toBe('Countess');
    expect(fullNameAfter(named('Ada', 'Lovelace'), { fullName: 'A', firstName: long, lastName: long })).toBe('A');
  });

  const name = fc.option(fc.constantFrom('Ada', 'King', 'von Neumann', '李', 'O’Neil', 'Ж'), { nil: null });
  const step = fc.oneof(
    name.map((firstName): UserChange => ({ firstName })),
    name.map((lastName): UserChange => ({ lastName })),
    fc.tuple(name, name).map(([firstName, lastName]): UserChange => ({ firstName, lastName })),
  );

  const madeOf = ({ first_name, last_name }: StoredUser) =>
    [first_name, last_name].filter((part) => part !== null).join(' ');

  it('follows through any run of changes exactly where it is made of the two, and is never empty (USER-32)', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        let user = named('Ada', 'Lovelace');
        for (const change of steps) {
          const before = user;
          user = applyChange(before, change, bySession);
          const following = madeOf(user) || before.full_name;
          expect(user.full_name).toBe(before.full_name === madeOf(before) ? following : before.full_name);
          expect(user.full_name).not.toBe('');
        }
      }),
    );
  });
});

describe('a change', () => {
  const full: StoredUser = {
    ...named('Ada', 'Lovelace'),
    middle_name: 'King',
    mobile: '+441234567890',
    designation: 'Countess',
    address: '{"city":"London"}',
    has_logged_in: 1,
  };

  it('leaves what is absent, and notes the time (USER-25)', () => {
    expect(applyChange(full, {}, bySession)).toEqual({ ...full, name_key: 'ada lovelace', updated_at: nowMs });
  });

  it('clears with null (USER-29)', () => {
    const cleared = {
      firstName: null,
      middleName: null,
      lastName: null,
      mobile: null,
      designation: null,
      address: null,
    };
    expect(applyChange(full, cleared, bySession)).toMatchObject({
      first_name: null,
      middle_name: null,
      last_name: null,
      mobile: null,
      designation: null,
      address: null,
      full_name: 'Ada Lovelace',
    });
  });

  it('replaces the address as a whole (USER-30)', () => {
    const { address } = applyChange(full, { address: { country: 'UK' } }, bySession);
    expect(JSON.parse(address ?? '')).toEqual({ country: 'UK' });
  });

  it('is read from the body without what users may not set, and without what is absent (USER-26)', () => {
    const body = {
      email: 'X@Example.com',
      orgId: 'x',
      _id: 'x',
      slug: 'x',
      isDeleted: true,
      role: 'admin',
      groups: [],
    };
    expect(wholeBody.parse(body)).toEqual({ email: 'x@example.com' });
    expect(Object.keys(wholeBody.parse(body))).toEqual(['email']);
    for (const [field, schema] of Object.entries(fieldBodies)) {
      const key = field === 'fullname' ? 'fullName' : field;
      const given = key === 'email' ? 'x@example.com' : 'X';
      expect(
        schema.parse({ ...body, fullName: 'X', firstName: 'X', lastName: 'X', designation: 'X', [key]: given }),
      ).toEqual({
        [key]: given,
      });
    }
  });
});

describe('an address after a change (ADDRESS-2, ADDRESS-3)', () => {
  const [a, b, c] = ['a@example.com', 'b@example.com', 'c@example.com'];
  /** Plays changes one after the other, by the user or by an administrator in a session. */
  function play(...steps: readonly (readonly ['user' | 'admin', string])[]) {
    let user: StoredUser = { ...plain, email: a };
    for (const [kind, email] of steps) user = applyChange(user, { email }, kind === 'user' ? byUser : bySession);
    return [user.email, user.recovery_email, user.email_verified_at];
  }

  it.each([
    ['is unverified when the user changes it', [['user', b]], [b, a, createdMs]],
    [
      'keeps the last verified one over further changes',
      [
        ['user', b],
        ['user', c],
      ],
      [c, a, createdMs],
    ],
    [
      'stays unverified when it is repeated, as PUT has to',
      [
        ['user', b],
        ['user', b],
      ],
      [b, a, createdMs],
    ],
    [
      'is verified as before when the user changes it back',
      [
        ['user', b],
        ['user', c],
        ['user', a],
      ],
      [a, null, createdMs],
    ],
    ['is verified when an administrator changes it', [['admin', b]], [b, null, nowMs]],
    [
      'is verified when an administrator changes it again',
      [
        ['user', b],
        ['admin', c],
      ],
      [c, null, nowMs],
    ],
    [
      'is not verified by an administrator who repeats it',
      [
        ['user', b],
        ['admin', b],
      ],
      [b, a, createdMs],
    ],
    ['is not touched by a user who repeats it', [['user', a]], [a, null, createdMs]],
  ] as const)('%s', (_, steps, outcome) => {
    expect(play(...steps)).toEqual(outcome);
  });

  it('stays when something else changes', () => {
    const moved = applyChange({ ...plain, email: a }, { email: b }, byUser);
    expect(applyChange(moved, { fullName: 'X' }, bySession)).toMatchObject({ email: b, recovery_email: a });
  });
});

describe('what consumers are told of a change (EVENT-6)', () => {
  const ids = { orgId: account.orgId, userId: account.id };

  it('leaves out what is not set', () => {
    expect(Object.entries(updatedPayload(plain))).toEqual(
      Object.entries({ ...ids, email: 'ada@example.com', fullName: 'Ada Lovelace' }),
    );
  });

  it('is the full set, and nothing besides', () => {
    const user = {
      ...named('Ada', 'Lovelace'),
      middle_name: 'K',
      designation: 'D',
      mobile: '1234567890',
      address: '{}',
    };
    const names = { firstName: 'Ada', middleName: 'K', lastName: 'Lovelace', designation: 'D' };
    expect(updatedPayload(user)).toEqual({ ...ids, email: 'ada@example.com', fullName: 'Ada Lovelace', ...names });
  });
});
