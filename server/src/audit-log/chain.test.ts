import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../base/canonical-json.ts';
import { Secret } from '../base/secret.ts';
import { areaOf, subjectKindOf } from './actions.ts';
import { contentHashOf, recordHashOf } from './chain.ts';
import { changesBetween } from './changes.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

describe('canonical JSON', () => {
  it('has sorted names at every depth, no white space, and nothing that is not set', () => {
    const value = { b: [{ z: 1, a: 'ä\n"' }], a: { d: null, c: undefined, b: true } };
    expect(canonicalJson(value)).toBe('{"a":{"b":true,"d":null},"b":[{"a":"ä\\n\\"","z":1}]}');
  });

  it('is the same however names are ordered, and is what it was after being read again', () => {
    const name = fc.string({ unit: fc.constantFrom('a', 'b', 'X', 'Y', '_', '-', 'é'), minLength: 1 });
    const value = fc.dictionary(
      name,
      fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.dictionary(name, fc.boolean())),
    );
    fc.assert(
      fc.property(value, (given) => {
        const reversed = Object.fromEntries(Object.entries(given).reverse());
        expect(canonicalJson(reversed)).toBe(canonicalJson(given));
        expect(canonicalJson(JSON.parse(canonicalJson(given)))).toBe(canonicalJson(given));
      }),
    );
  });
});

describe('the hashes of a record (AUDIT-10)', () => {
  const row = {
    sequence: 7,
    id: '0123456789abcdef01234567',
    occurred_at: Date.UTC(2026, 10, 27, 20, 17, 0, 123),
    org_id: null,
    action: 'token.created',
    outcome: 'success',
    actor_user_id: 'u',
    actor_token_id: 't',
    actor_client_id: null,
    subject_id: 's',
    subject_owner_id: 'o',
    request_id: 'r',
    content_hash: 'c',
    previous_hash: 'p',
  };

  it('are those of the documented form', () => {
    const text =
      '["latchkey-audit-1","p",7,"0123456789abcdef01234567","2026-11-27T20:17:00.123Z",null,"token.created","success","u","t",null,"s","o","r","c"]';
    expect(recordHashOf(row)).toBe(sha256(text));
    const content = { network: '::1', details: '{"a":1}', changes: '{}' };
    expect(contentHashOf('5a17', content)).toBe(sha256('5a17["::1",{"a":1},{}]'));
  });

  it.each(Object.keys(row))('depends on %s', (name) => {
    const other = name === 'sequence' || name === 'occurred_at' ? 8 : 'x';
    expect(recordHashOf({ ...row, [name]: other })).not.toBe(recordHashOf(row));
  });
});

describe('what an act changed (AUDIT-9)', () => {
  it('is what differs, field by field, with null for nothing', () => {
    const before = { name: 'A', address: { city: 'B', zip: '1' }, gone: 1, same: [1] };
    const after = { name: 'A', address: { zip: '1', city: 'C' }, new: 2, same: [1] };
    expect(changesBetween(before, after)).toEqual({
      address: { before: { city: 'B', zip: '1' }, after: { zip: '1', city: 'C' } },
      gone: { before: 1, after: null },
      new: { before: null, after: 2 },
    });
    expect(changesBetween(null, { a: 1, b: null })).toEqual({ a: { before: null, after: 1 } });
    expect(changesBetween({ a: 1 }, null)).toEqual({ a: { before: 1, after: null } });
  });

  it('tells of a secret only that it is one, and whether it is another (AUDIT-8)', () => {
    const secret = (value: string | null) => ({ secret: value === null ? null : new Secret(value) });
    expect(changesBetween(secret('a'), secret('a'))).toEqual({});
    expect(canonicalJson(changesBetween(secret('a'), secret('b')))).toBe(
      '{"secret":{"after":"[secret]","before":"[secret]"}}',
    );
    expect(canonicalJson(changesBetween(secret(null), secret('b')))).toBe(
      '{"secret":{"after":"[secret]","before":null}}',
    );
  });
});

describe('an action', () => {
  it('belongs to the area before its dot', () => {
    expect(areaOf('settings.mail-set')).toBe('settings');
    expect(areaOf('strange')).toBe('');
  });

  it('has a subject of a kind, or none', () => {
    const of = (action: string, subjectId: string | null) => subjectKindOf(action, { subjectId, orgId: 'org' });
    expect(of('token.created', 't')).toBe('token');
    expect(of('settings.mail-set', null)).toBeNull();
    expect(of('sign-in.refused', null)).toBeNull();
    expect(of('picture.stored', 'u')).toBe('user');
    expect(of('picture.stored', 'org')).toBe('organization');
    expect(of('of-a-later.release', 'x')).toBeNull();
  });
});
