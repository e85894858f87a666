import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import { tablesOf } from '../../server/test/support/statement-watch.ts';
import type { Json, TestApp } from '../../server/test/support/test-app.ts';
import {
  group,
  idOf,
  imported,
  importText,
  type Line,
  newOrganization,
  refusedImport,
  sha256,
  startNow,
  token,
  toLines,
  user,
} from './import-world.ts';

beforeAll(ensureServerIsBuilt);

const raw = 'eyJhbGciOiJFZERTQSJ9.eyJ1c2VySWQiOiI0NzExIn0.c2lnbmF0dXJlLTQ3MTE';

describe('what is wrong with a dump', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startNow();
  });
  afterEach(() => app.close());

  it('3: is told with its place and field and without a value; nothing is written (CLI-18, CLI-20)', async () => {
    const lines: Line[] = [
      ...newOrganization,
      user(2, { email: 'not-an-address-4711' }),
      user(3, { email: 'person-1@example.com' }),
      user(1, { email: 'other@example.com' }),
      user(4, { _id: '4711' }),
      user(5, { fullName: 'Secret4711\u202e' }),
      user(6, { orgId: idOf(0xdef) }),
      user(7),
      token(20, 99),
      token(21, 7, { tokenHash: 'hash-4711' }),
      token(22, 7, { accessToken: raw }),
      token(23, 7, { note: `bearer ${raw}` }),
      token(24, 7, { expiresAt: undefined }),
      token(25, 7, { scopes: [] }),
      token(26, 7, { createdAt: 'yesterday-4711' }),
      token(27, 7),
      token(28, 7, { tokenHash: sha256('raw-27') }),
      group(30, [7, 98]),
      ['userCredentials', { userId: idOf(7), hashedPassword: 'Plain-Password-4711' }],
    ];
    const before = tablesOf(app);
    const text = `${toLines(lines)}\n{"collection":"users","document":["4711"]}\nnot json 4711`;
    const human = await importText(app, ['dump'], text);
    expect(human).toMatchObject({ code: 3, stdout: '' });
    expect(human.stderr).toMatch(/^latchkey: There are problems with .*: nothing was written\. --skip-invalid /);
    expect(human.stderr).not.toMatch(/4711\b(?!")|eyJ/);
    const { code, message, report } = await refusedImport(app, ['dump'], text);
    expect([code, message.includes('nothing was written')]).toEqual(['REFUSED', true]);
    expect(JSON.stringify(report)).not.toMatch(/4711|eyJ/);
    const told = report.problems.listed.map(({ place, field }: Json) => `${place}: ${field}`);
    expect(told).toEqual([
      'line 4: email',
      'line 5: email',
      'line 6: email',
      'line 7: _id',
      'line 8: fullName',
      'line 9: orgId',
      'line 12: tokenHash',
      'line 13: accessToken',
      'line 14: note',
      'line 15: expiresAt',
      'line 16: scopes',
      'line 17: createdAt',
      'line 19: tokenHash',
      'line 21: hashedPassword',
      'line 22: the document',
      'line 23: the line',
      'line 20: users',
      'line 11: userId',
    ]);
    expect(report.problems.count).toBe(told.length);
    expect(tablesOf(app)).toEqual(before);

    const skipped = await imported(app, ['dump', '--skip-invalid'], text);
    expect(skipped).toMatchObject({
      changed: true,
      users: { created: 2, invalid: 6 },
      tokens: { created: 1, invalid: 8 },
      groups: { created: 0, invalid: 1 },
    });
    expect(await imported(app, ['dump', '--skip-invalid'], text)).toMatchObject({ changed: false });
  });

  it('0: --dry-run tells what would be done, and writes nothing (CLI-18)', async () => {
    const before = tablesOf(app);
    const lines = [...newOrganization, user(2), group(30, [1, 2]), token(20, 2)];
    const input = await imported(app, ['dump', '--dry-run'], toLines(lines));
    expect(input).toMatchObject({ dryRun: true, changed: false, users: { created: 2 }, tokens: { created: 1 } });
    expect(tablesOf(app)).toEqual(before);
    const { dryRun: _, changed, ...done } = await imported(app, ['dump'], toLines(lines));
    expect(changed).toBe(true);
    const { dryRun: __, changed: ___, ...asked } = input;
    expect({ ...asked, file: done.file }).toEqual(done);
  });

  it.each([
    ['no organization', toLines([user(1)]), 'has no document of one'],
    ['nobody to administrate it', toLines(newOrganization.slice(0, 2)), 'has no active member of an admin group'],
    ['no JSON', 'users,groups', 'is neither a JSON object nor JSON Lines'],
  ])('3 or 1: is said where a file has %s (CLI-17)', async (_, text, message) => {
    const { code, stderr } = await importText(app, ['dump'], text);
    expect([code === 0, stderr.includes(message)]).toEqual([false, true]);
    expect(tablesOf(app)['organizations']).toEqual([]);
  });

  it('1: is said where there is no file, or one that is not UTF-8; 2: where none is named (CLI-6)', async () => {
    const bytes = await importText(app, ['dump'], Buffer.from('{"users":[]\xff}', 'latin1'));
    expect([bytes.code, bytes.stderr.includes('is not UTF-8')]).toEqual([1, true]);
  });
});

describe('a dump for an organization that is here', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startNow();
    await imported(
      app,
      ['dump'],
      toLines([...newOrganization, user(2), user(3), group(30, [2]), token(20, 2), token(21, 2)]),
    );
  });
  afterEach(() => app.close());
  const withRaw = (number: number) => app.with(`raw-${number}`);
  const later = { updatedAt: '2026-02-02T00:00:00Z' };

  it('0: changes people whom the dump has newer, adds members and revokes; takes nothing away (CLI-17, CLI-20)', async () => {
    const newer = [
      user(2, { ...later, fullName: 'Grace Hopper', email: 'grace@example.com', hasLoggedIn: true }),
      user(3, { fullName: 'Not newer' }),
      group(30, [3]),
      token(20, 2, { isRevoked: true, revokeReason: 'Lost' }),
    ];
    expect(await imported(app, ['dump'], toLines(newer))).toMatchObject({
      changed: true,
      users: { updated: 1, unchanged: 1 },
      groups: { unchanged: 1 },
      memberships: 1,
      tokens: { updated: 1 },
    });
    expect((await withRaw(20).get('/org')).body.error.code).toBe('TOKEN_REVOKED');
    const seen = await withRaw(21).get(`/users/${idOf(2)}`);
    expect(seen.body).toMatchObject({ fullName: 'Grace Hopper', email: 'grace@example.com', hasLoggedIn: true });
    expect((await withRaw(21).get(`/users/${idOf(3)}`)).body.fullName).toBe('Person 3');
    const changed = (await app.events()).filter(({ event_type }) => event_type === 'userUpdated');
    expect(changed.map(({ payload }) => payload.userId)).toEqual([idOf(2)]);
    expect(await imported(app, ['dump'], toLines(newer))).toMatchObject({ changed: false });
  });

  it('0: brings nothing back that ended here: tokens, users, groups (CLI-20, AUTH-40, PAT-16)', async () => {
    const { services } = app;
    await services.db.transaction(async (tx) => {
      await tx.updateTable('users').set({ is_deleted: 1 }).where('id', '=', idOf(3)).execute();
      await tx.updateTable('user_groups').set({ is_deleted: 1 }).where('id', '=', idOf(30)).execute();
    });
    await imported(app, ['dump'], toLines([token(20, 2, { isRevoked: true })]));
    // What ended long ago is removed; the audit log knows of it.
    await services.db.transaction((tx) => tx.deleteFrom('personal_access_tokens').where('id', '=', idOf(20)).execute());
    const old = [user(3, later), group(30, [2, 3]), token(20, 2), token(22, 2, { expiresAt: '2020-01-01T00:00:00Z' })];
    expect(await imported(app, ['dump'], toLines(old))).toMatchObject({
      changed: false,
      skipped: {
        'users who are deleted here': 1,
        'groups that are deleted here': 1,
        'tokens that were revoked here': 1,
        'tokens that ended longer ago than they are kept': 1,
      },
    });
    expect((await withRaw(20).get('/org')).status).toBe(401);
  });

  it('3: does not take the id, address, name or hash of another (CLI-18, USER-10, GROUP-3)', async () => {
    const { report } = await refusedImport(
      app,
      ['dump'],
      toLines([
        user(4, { email: 'person-2@example.com' }),
        group(31, [], { name: 'GROUP 30' }),
        token(23, 2, { tokenHash: sha256('raw-20') }),
        token(20, 2, { tokenHash: sha256('another') }),
        token(21, 3),
      ]),
    );
    const told = report.problems.listed.map(({ place, field }: Json) => `${place}: ${field}`);
    expect(told).toEqual(['line 1: email', 'line 2: name', 'line 3: tokenHash', 'line 4: _id', 'line 5: userId']);
  });

  it('0: leaves passwords that cannot be verified here to their owners, and says so (CLI-20)', async () => {
    const argon2 = '$argon2id$v=19$m=4096,t=3,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g';
    const lines: Line[] = [
      user(5),
      user(6),
      user(7),
      [
        'userCredentials',
        { userId: idOf(5), hashedPassword: '$2b$10$abcdefghijklmnopqrstuuO5tqv1r9R8Yv3vJ1E8Z9dB0Zk2K8f7a' },
      ],
      ['userCredentials', { userId: idOf(6), hashedPassword: argon2 }],
      ['userCredentials', { userId: idOf(7), hashedPassword: argon2.replace('m=4096', 'm=9999999') }],
      ['connectors', { _id: idOf(9) }],
    ];
    expect(await imported(app, ['dump'], toLines(lines))).toMatchObject({
      passwords: 1,
      left: {
        'passwords that cannot be verified here: these users set new ones': 2,
        'documents of other collections': 1,
      },
    });
    const stored = tablesOf(app)['password_credentials'] as Json[];
    expect(stored.map(({ user_id }) => user_id)).toEqual([idOf(6)]);
  });
});
