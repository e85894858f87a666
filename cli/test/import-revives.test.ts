import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { tablesOf } from '../../server/test/support/statement-watch.ts';
import type { Client, Json, TestApp } from '../../server/test/support/test-app.ts';
import { password } from '../../server/test/support/test-app.ts';
import { readCsvUsers } from '../src/import/csv-users.ts';
import { runImport } from '../src/import/run-import.ts';
import { stageDump } from '../src/import/stage-dump.ts';
import { group, idOf, type Line, newOrganization, startNow, token, toLines, user } from './import-world.ts';

/** Runs an import on the store of a service, in this process; answers its report. */
async function imported(
  app: TestApp,
  [noun, ...options]: readonly ('dump' | 'users' | '--skip-invalid')[],
  content: string,
): Promise<Json> {
  const file = join(app.dataDir, 'import.txt');
  writeFileSync(file, content);
  const progress = () => {};
  const input = { file, isDry: false, isMakingGroups: false, mayCreateOrganization: noun === 'dump' };
  const isSkippingInvalid = options.includes('--skip-invalid');
  const stage: Parameters<typeof runImport>[2]['stage'] = (staging) =>
    noun === 'dump' ? stageDump(file, staging, progress) : readCsvUsers(file, staging, progress);
  return (await runImport(app.services.config, { progress }, { ...input, isSkippingInvalid, stage })).data;
}

const rowsOf = (app: TestApp, table: string): Json[] => [...(tablesOf(app)[table] ?? [])];

vi.setConfig({ testTimeout: 60_000 });

describe('tokens that an import brings in, made by tokens (CRED-4)', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startNow();
    await imported(app, ['dump'], toLines(newOrganization));
  });
  afterAll(() => app.close());
  const byId = () => new Map(rowsOf(app, 'personal_access_tokens').map((row) => [row.id, row]));

  it('end with them, whatever the dump says and in whatever order', async () => {
    const lines = [
      token(0x53, 1, { parentId: idOf(0x52), expiresAt: 'Never' }),
      token(0x52, 1, { parentId: idOf(0x51) }),
      token(0x51, 1, { isRevoked: true, revokedAt: new Date().toISOString() }),
      token(0x55, 1, { parentId: idOf(0x54), expiresAt: 'Never' }),
      token(0x54, 1, { expiresAt: '2099-01-01T00:00:00.000Z' }),
    ];
    await imported(app, ['dump'], toLines(lines));
    const rows = byId();
    for (const number of [0x51, 0x52, 0x53]) expect(rows.get(idOf(number)).revoked_at).not.toBeNull();
    expect(rows.get(idOf(0x53)).revoke_reason).toBe('The token that created it was revoked');
    expect(rows.get(idOf(0x55))).toMatchObject({
      revoked_at: null,
      expires_at: Date.parse('2099-01-01T00:00:00.000Z'),
    });
    expect(await imported(app, ['dump'], toLines(lines))).toMatchObject({ changed: false });
  });

  it('of one that was revoked here are revoked, also where its row was removed since', async () => {
    await imported(app, ['dump'], toLines([token(0x61, 1), token(0x62, 1)]));
    for (const number of [0x61, 0x62]) await revokeHere(app, idOf(number));
    await app.services.db.transaction((tx) =>
      tx.deleteFrom('personal_access_tokens').where('id', '=', idOf(0x62)).execute(),
    );
    const children = [token(0x63, 1, { parentId: idOf(0x61) }), token(0x64, 1, { parentId: idOf(0x62) })];
    await imported(app, ['dump'], toLines(children));
    const live = [...byId().values()].filter(({ revoked_at: at }) => at === null).map(({ id }) => id);
    expect(live).not.toContain(idOf(0x63));
    expect(live).not.toContain(idOf(0x64));
  });

  const told = async (lines: readonly Line[]): Promise<string[]> => {
    const refused = await imported(app, ['dump'], toLines(lines)).catch((error: Json) => error);
    const { listed } = refused.more.report.problems;
    return listed.map(
      ({ place, field, message }: Json) => `${place}: ${field} ${message.split(' ').slice(0, 4).join(' ')}`,
    );
  };
  const made = (number: number, by: number, more: Readonly<Record<string, unknown>> = {}) =>
    token(number, 1, { parentId: idOf(by), ...more });

  it('3: of one that no one knows are a problem', async () => {
    expect(await told([made(0x71, 0x7f)])).toEqual(['line 1: parentId names a token that']);
    expect(byId().has(idOf(0x71))).toBe(false);
  });

  it('3: by themselves, by each other or by what descends from such are problems, each with its line (CRED-12)', async () => {
    const lines = [
      made(0x72, 0x73),
      made(0x73, 0x74),
      made(0x74, 0x72),
      made(0x75, 0x75),
      made(0x76, 0x72),
      token(0x77, 1),
    ];
    const circle = 'parentId leads back to the';
    expect(await told(lines)).toEqual([1, 2, 3, 4, 5].map((line) => `line ${line}: ${circle}`));
    expect([...byId().keys()].filter((id) => /7[2-7]$/.test(id))).toEqual([]);
    const data = await imported(app, ['dump', '--skip-invalid'], toLines(lines));
    expect(data).toMatchObject({ tokens: { created: 1, invalid: 5 } });
  });

  it('3: in a circle that file and store make together (CRED-12)', async () => {
    await imported(app, ['dump'], toLines([token(0x91, 1), made(0x92, 0x91)]));
    // What expired long ago is removed without a record of its own.
    await app.services.db.transaction((tx) =>
      tx.deleteFrom('personal_access_tokens').where('id', '=', idOf(0x91)).execute(),
    );
    expect(await told([made(0x91, 0x92)])).toEqual(['line 1: parentId leads back to the']);
  });

  it('3: of another user, or with more scopes than their maker, in the file or here (CRED-12, SCOPE-22)', async () => {
    await imported(app, ['dump'], toLines([token(0xa0, 1), user(9)]));
    const wider = { scopes: ['user:read', 'org:admin'] };
    const lines = [
      token(0xa1, 1),
      token(0xa2, 9, { parentId: idOf(0xa1) }),
      token(0xa3, 9, { parentId: idOf(0xa0) }),
      made(0xa4, 0xa1, wider),
      made(0xa5, 0xa0, wider),
      made(0xa6, 0xa1),
    ];
    const another = 'parentId names a token of';
    const tooMuch = 'scopes names scopes that the';
    expect(await told(lines)).toEqual([
      `line 2: ${another}`,
      `line 3: ${another}`,
      `line 4: ${tooMuch}`,
      `line 5: ${tooMuch}`,
    ]);
  });

  it('0: of one that is left out, or of theirs, are left out as well with --skip-invalid', async () => {
    const ofNobody = token(0x81, 0xdead);
    const [child, grandchild] = [token(0x82, 1, { parentId: idOf(0x81) }), token(0x83, 1, { parentId: idOf(0x82) })];
    const lines = toLines([ofNobody, child, grandchild, token(0x84, 1)]);
    const data = await imported(app, ['dump', '--skip-invalid'], lines);
    expect(data).toMatchObject({ tokens: { created: 1, invalid: 3 } });
    expect([0x81, 0x82, 0x83, 0x84].map((number) => byId().has(idOf(number)))).toEqual([false, false, false, true]);
  });

  it('never count longer than any of their makers, in any forest (property)', async () => {
    let base = 0x1000;
    const node = fc.record({
      parent: fc.nat(),
      isRevoked: fc.boolean(),
      expires: fc.constantFrom('Never', '2098-01-01T00:00:00.000Z', '2099-01-01T00:00:00.000Z'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(node, { minLength: 1, maxLength: 12 }), async (nodes) => {
        base += 0x100;
        const lines = nodes.map(
          ({ parent, isRevoked, expires }, place): Line =>
            token(base + place, 1, {
              // Of the one before or itself: itself stands for no maker.
              parentId: parent % (place + 1) === place ? null : idOf(base + (parent % (place + 1))),
              isRevoked,
              expiresAt: expires,
            }),
        );
        await imported(app, ['dump'], toLines(lines.toReversed()));
        const rows = byId();
        const outlives = ({ parent_id: parentId, revoked_at: revokedAt, expires_at: expiresAt }: Json) => {
          const maker = rows.get(parentId);
          if (!maker) return false;
          return (maker.revoked_at !== null && revokedAt === null) || (expiresAt ?? 9e15) > (maker.expires_at ?? 9e15);
        };
        const made = [...rows.values()].filter(({ id }) => Number.parseInt(id, 16) >= base);
        expect(made).toHaveLength(nodes.length);
        expect(made.filter(outlives)).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });
});

async function revokeHere(app: TestApp, tokenId: string): Promise<void> {
  const { status } = await (await administrator(app)).delete(`/personal-access-tokens/admin/${tokenId}`);
  if (status !== 200) throw new Error(`not revoked: ${status}`);
}

/** The administrator whom the dump brought, signed in. */
async function administrator(app: TestApp): Promise<Client> {
  const { db, passwords } = app.services;
  const row = { user_id: idOf(1), password_hash: await passwords.hash(password), updated_at: 0 };
  await db.transaction(async (tx) => {
    await tx.deleteFrom('password_credentials').where('user_id', '=', row.user_id).execute();
    await tx.insertInto('password_credentials').values(row).execute();
  });
  const { email } = await db.read
    .selectFrom('users')
    .where('id', '=', idOf(1))
    .select('email')
    .executeTakeFirstOrThrow();
  return app.signIn(email);
}

describe('addresses that were changed here (ADDRESS-17)', () => {
  it('stay, whatever date an import names, and what else it says is taken; dates in the future are now', async () => {
    const app = await startNow();
    try {
      await imported(app, ['dump'], toLines([...newOrganization, user(2), user(3)]));
      const admin = await administrator(app);
      const own = 'grace@example.com';
      expect((await admin.patch(`/users/${idOf(2)}/email`, { email: own })).status).toBe(200);
      const future = { updatedAt: '2199-01-01T00:00:00Z', createdAt: '2199-01-01T00:00:00Z' };
      const lines = [
        user(2, { ...future, designation: 'Rear Admiral' }),
        user(3, { ...future, email: 'ada@example.com' }),
        user(4, future),
        token(0xb0, 4, { createdAt: future.createdAt, lastUsedAt: future.createdAt }),
      ];
      const before = Date.now();
      await imported(app, ['dump'], toLines(lines));
      const rows = rowsOf(app, 'users');
      const of = (number: number) => rows.find(({ id }) => id === idOf(number));
      expect(of(2)).toMatchObject({ email: own, designation: 'Rear Admiral' });
      // No one changed this one here.
      expect(of(3)).toMatchObject({ email: 'ada@example.com' });
      const [made] = rowsOf(app, 'personal_access_tokens');
      const times = [
        of(2).updated_at,
        of(3).updated_at,
        of(4).updated_at,
        of(4).created_at,
        made.created_at,
        made.last_used_at,
      ];
      for (const ms of times) expect(ms).toBeLessThanOrEqual(Date.now());
      expect(of(4).created_at).toBeGreaterThanOrEqual(before);
      expect(await imported(app, ['dump'], toLines(lines))).toMatchObject({ changed: false });
    } finally {
      await app.close();
    }
  });
});

describe('groups that people were taken out of (CRED-6)', () => {
  it('do not get them back by the same dump, the admin group first of all, nor by a CSV file', async () => {
    const app = await startNow();
    try {
      const adminGroup = newOrganization.find(([, { type }]) => type === 'admin')?.[1]['_id'] as string;
      const lines = [...newOrganization, user(2), user(3), user(4), group(0x30, [2, 3, 4], { name: 'Research' })];
      const withAdmins = lines.map(
        (line): Line =>
          line[1]['_id'] === adminGroup ? [line[0], { ...line[1], users: [idOf(1), idOf(2), idOf(3)] }] : line,
      );
      await imported(app, ['dump'], toLines(withAdmins));
      const admin = await administrator(app);
      const members = (groupId: string) =>
        rowsOf(app, 'group_members')
          .filter(({ group_id: id }) => id === groupId)
          .map(({ user_id: id }): string => id)
          .toSorted();
      const remove = async (userIds: string[], groupIds: string[]) =>
        expect((await admin.post('/userGroups/remove-users', { userIds, groupIds })).status).toBe(200);
      await remove([idOf(2)], [adminGroup, idOf(0x30)]);
      await remove([idOf(3)], [adminGroup]);
      expect((await admin.delete(`/users/${idOf(3)}`)).status).toBe(200);
      expect((await admin.post(`/users/${idOf(3)}/restore`)).status).toBe(200);
      const again = await imported(app, ['dump'], toLines(withAdmins));
      expect(again).toMatchObject({
        changed: false,
        memberships: 0,
        skipped: { 'memberships that were taken away here': 4 },
      });
      expect(members(adminGroup)).toEqual([idOf(1)]);
      expect(members(idOf(0x30))).toEqual([idOf(4)]);
      const { email } = (await admin.get(`/users/${idOf(2)}`)).body;
      const csv = await imported(app, ['users'], `email,role,groups\n${email},admin,Research\n`);
      expect(csv).toMatchObject({ changed: false, memberships: 0 });
      // New users join all the same, and an administrator may add back anyone.
      await imported(app, ['users'], 'email,fullName,groups\nnew@example.com,New,Research\n');
      expect(members(idOf(0x30))).toHaveLength(2);
      await admin.post('/userGroups/add-users', { userIds: [idOf(2)], groupIds: [adminGroup] });
      expect(members(adminGroup)).toEqual([idOf(1), idOf(2)]);
    } finally {
      await app.close();
    }
  });
});
