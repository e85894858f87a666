import { describe, expect, it } from 'vitest';
import { boundedJson } from './changes.ts';

const ids = (count: number, from = 0) =>
  Array.from({ length: count }, (_, place) => (from + place).toString(16).padStart(24, '0'));

describe('what a record tells of a change (AUDIT-16)', () => {
  it('is written as it is up to 4 KB', () => {
    const changes = { name: { before: 'Old', after: 'New' }, ids: ids(100) };
    expect(JSON.parse(boundedJson(changes))).toEqual(changes);
  });

  it('names who came and who left, however many stay', () => {
    const before = ids(2_000);
    const after = [...before.slice(1), 'f'.repeat(24)];
    expect(JSON.parse(boundedJson({ members: { before, after } }))).toEqual({
      members: { before: [before[0]], after: ['f'.repeat(24)], unchanged: 1_999 },
    });
  });

  it('has a count in the place of what there is no room for', () => {
    const told = JSON.parse(boundedJson({ userIds: ids(20_000), members: { before: ids(3_000), after: [] } }));
    expect(told.userIds).toEqual([...ids(50), { more: 19_950 }]);
    expect(told.members).toEqual({ before: [...ids(50), { more: 2_950 }], after: [], unchanged: 0 });
    const text = JSON.parse(boundedJson({ text: '😀'.repeat(5_000) })).text;
    expect(text).toMatch(/… \(10000 characters\)$/);
    expect(text.isWellFormed()).toBe(true);
  });

  it('is never longer than 4 KB, whatever changed', () => {
    const many = Object.fromEntries(
      ids(3_000).map((id) => [`field-${id}`, { before: ids(50), after: 'x'.repeat(900) }]),
    );
    const deep = { list: ids(60).map((id) => ({ id, of: ids(60).map((one) => ({ one, text: 'y'.repeat(300) })) })) };
    for (const values of [many, deep, { deep, many }, { wide: ids(30).map((id) => 'ü'.repeat(150) + id) }]) {
      expect(Buffer.byteLength(boundedJson(values))).toBeLessThanOrEqual(4_096);
    }
  });
});
