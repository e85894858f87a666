import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mergeMemberships, type StoredMembership } from './membership.ts';

function membership(user: number, group: number | null): StoredMembership {
  return {
    id: user.toString(16).padStart(24, '0'),
    orgId: 'a'.repeat(24),
    fullName: `User ${user}`,
    email: `user${user}@example.com`,
    hasLoggedIn: user % 2 === 0 ? 1 : 0,
    groupName: group === null ? null : `group ${group}`,
    groupType: group === null ? null : 'custom',
  };
}

async function* batchesOf(rows: readonly (readonly StoredMembership[])[], onEnd = () => {}) {
  try {
    yield* rows;
  } finally {
    onEnd();
  }
}

async function mergedOf(rows: readonly (readonly StoredMembership[])[]) {
  const merged: { readonly fullName: string; readonly groups: readonly { readonly name: string }[] }[] = [];
  for await (const users of mergeMemberships(batchesOf(rows))) {
    expect(users.length).toBeGreaterThan(0);
    merged.push(...users);
  }
  return merged;
}

describe('mergeMemberships (USER-19)', () => {
  it('makes one user of memberships that are spread over several batches', async () => {
    const rows = [0, 1, 2, 3, 4].map((group) => membership(7, group));
    const expected = [
      {
        _id: membership(7, 0).id,
        userId: membership(7, 0).id,
        orgId: 'a'.repeat(24),
        fullName: 'User 7',
        email: 'user7@example.com',
        hasLoggedIn: false,
        groups: [0, 1, 2, 3, 4].map((group) => ({ name: `group ${group}`, type: 'custom' })),
      },
    ];
    expect(await mergedOf([rows])).toEqual(expected);
    expect(await mergedOf(rows.map((row) => [row]))).toEqual(expected);
    expect(await mergedOf([rows.slice(0, 2), rows.slice(2)])).toEqual(expected);
  });

  it('leaves out groups that are not there, and keeps who is in none', async () => {
    const merged = await mergedOf([
      [membership(1, null), membership(2, null)],
      [membership(2, 5)],
      [membership(3, null)],
    ]);
    expect(merged.map(({ groups }) => groups.map(({ name }) => name))).toEqual([[], ['group 5'], []]);
  });

  it('makes nothing of nothing', async () => {
    expect(await mergedOf([])).toEqual([]);
  });

  it('gives the same whatever the batches are', async () => {
    const groups = fc.array(fc.oneof(fc.constant(null), fc.nat(9)), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(fc.array(groups, { maxLength: 12 }), fc.integer({ min: 1, max: 9 }), async (users, size) => {
        const rows = users.flatMap((of, user) => of.map((group) => membership(user, group)));
        const starts = Array.from({ length: Math.ceil(rows.length / size) }, (_, place) => place * size);
        const rowBatches = starts.map((start) => rows.slice(start, start + size));
        const merged = await mergedOf(rowBatches);
        expect(merged.map(({ fullName }) => fullName)).toEqual(users.map((_, user) => `User ${user}`));
        const named = users.map((of) => of.flatMap((group) => (group === null ? [] : [`group ${group}`])));
        expect(merged.map((user) => user.groups.map(({ name }) => name))).toEqual(named);
      }),
    );
  });

  it('ends what it reads from when it is stopped early', async () => {
    let hasEnded = false;
    const rows = [[membership(1, 1), membership(2, 1)], [membership(3, 1)]];
    const merged = mergeMemberships(
      batchesOf(rows, () => {
        hasEnded = true;
      }),
    );
    await merged.next();
    expect(hasEnded).toBe(false);
    await merged.return(undefined);
    expect(hasEnded).toBe(true);
  });
});
