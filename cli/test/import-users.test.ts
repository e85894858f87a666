import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import { tablesOf } from '../../server/test/support/statement-watch.ts';
import type { Client, Json, TestApp } from '../../server/test/support/test-app.ts';
import { latchkey } from './command-process.ts';
import { imported, importText, refusedImport, startNow } from './import-world.ts';

beforeAll(ensureServerIsBuilt);

describe('latchkey import users, while a server runs', () => {
  let app: TestApp;
  let admin: Client;
  let report: Json;
  let userList: Json[];
  const csv = [
    '\ufeffE-Mail,Full Name,first_name,lastName,Mobile,designation,City,Groups,role',
    'Grace@Example.com,Rear Admiral Hopper,Grace,Hopper,+442079460001,"Rear Admiral, ret.",York,research; Ops ;research,admin',
    '',
    'katherine@bücher.example,,Katherine,Johnson,,,,RESEARCH,member',
    'ada@example.com,,,,,Countess,,,',
    'dorothy@example.com,"Dorothy ""Dot"" Vaughan",,,,,,everyone,',
  ].join('\r\n');

  beforeAll(async () => {
    app = await startNow();
    admin = await app.setUp();
    await admin.post('/userGroups', { name: 'Research', type: 'standard' });
    report = await imported(app, ['users', '--create-groups'], csv);
    userList = (await admin.get('/users/fetch/with-groups')).body;
  });
  afterAll(() => app.close());
  const groupsOf = (email: string) =>
    userList
      .find((one) => one.email === email)
      ?.groups.map(({ name }: Json) => name)
      .sort();

  it('0: creates anyone who is new and changes anyone who is here, and tells how many (CLI-16)', async () => {
    expect(report).toMatchObject({
      changed: true,
      users: { created: 3, updated: 1, unchanged: 0, invalid: 0 },
      groups: { created: 1 },
      memberships: 4,
      problems: { count: 0 },
    });
    const users: Json[] = (await admin.get('/users')).body;
    const find = (email: string) => users.find((one) => one.email === email);
    expect(find('grace@example.com')).toMatchObject({
      fullName: 'Rear Admiral Hopper',
      firstName: 'Grace',
      lastName: 'Hopper',
      mobile: '+442079460001',
      designation: 'Rear Admiral, ret.',
      address: { city: 'York' },
      hasLoggedIn: false,
    });
    expect(find('katherine@xn--bcher-kva.example')).toMatchObject({ fullName: 'Katherine Johnson' });
    expect(find('dorothy@example.com')).toMatchObject({ fullName: 'Dorothy "Dot" Vaughan' });
    expect(find('ada@example.com')).toMatchObject({ fullName: 'Ada Lovelace', designation: 'Countess' });
  });

  it('0: gives groups, found in any case, and the role of an administrator; takes none (CLI-16, GROUP-3, GROUP-16)', () => {
    expect(groupsOf('grace@example.com')).toEqual(['Ops', 'Research', 'admin', 'everyone']);
    expect(groupsOf('katherine@xn--bcher-kva.example')).toEqual(['Research', 'everyone']);
    expect(groupsOf('dorothy@example.com')).toEqual(['everyone']);
    expect(groupsOf('ada@example.com')).toEqual(['admin', 'everyone']);
  });

  it('0: tells of each in events and audit log, as the API does (CLI-19, USER-5, AUDIT-9)', async () => {
    const events = (await app.events()).slice(2);
    expect(events.map(({ event_type, payload }) => [event_type, payload.email])).toEqual([
      ['userAdded', 'grace@example.com'],
      ['userAdded', 'katherine@xn--bcher-kva.example'],
      ['userAdded', 'dorothy@example.com'],
      ['userUpdated', 'ada@example.com'],
    ]);
    const acts = (await app.audit()).filter(({ request_id }) => request_id === 'operator');
    expect(acts.map(({ action }): string => action).sort()).toEqual([
      'group.created',
      'group.members-added',
      'group.members-added',
      'group.members-added',
      'user.created',
      'user.created',
      'user.created',
      'user.updated',
    ]);
  });

  it('0: another run changes nothing and says so, in words as well (CLI-19)', async () => {
    const before = tablesOf(app);
    expect(await imported(app, ['users'], csv)).toMatchObject({ changed: false, users: { unchanged: 4 } });
    const { code, stdout, stderr } = await importText(app, ['users'], csv);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'Nothing was changed: all of it is here already\nusers: 4 unchanged\n',
      stderr: '',
    });
    expect(tablesOf(app)).toEqual(before);
  });
});

describe('what is wrong with a file of people', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startNow();
  });
  afterEach(() => app.close());

  it('3: is told with its line and field and without a value; nothing is written (CLI-16, CLI-18, USER-6, USER-10)', async () => {
    const admin = await app.setUp();
    const gone = await app.member(admin, 'gone@example.com');
    await app.deleteUser(gone.userId);
    const csv = [
      'email,fullName,mobile,groups,role',
      'grace-4711,Grace,,,',
      'good@example.com,Good Person,,,',
      'GOOD@example.com,Good Person,,,',
      'one@example.com,One,4711,,',
      'two@example.com,Two,,,boss-4711',
      'three@example.com,Three,,unknown-4711,',
      'gone@example.com,Gone,,,',
      'four@example.com,,,,',
      'five@example.com,Five\u202e4711,,,',
      'six@example.com,Six',
    ].join('\n');
    const before = tablesOf(app);
    const { report } = await refusedImport(app, ['users'], csv);
    expect(JSON.stringify(report)).not.toContain('4711');
    expect(report.problems.listed.map(({ place, field }: Json) => `${place}: ${field}`)).toEqual([
      'line 2: email',
      'line 4: email',
      'line 5: mobile',
      'line 6: role',
      'line 10: fullName',
      'line 11: the line',
      'line 7: groups',
      'line 8: email',
      'line 9: fullName',
    ]);
    expect(tablesOf(app)).toEqual(before);
    const done = await imported(app, ['users', '--skip-invalid'], csv);
    expect(done).toMatchObject({ changed: true, users: { created: 1, invalid: 9 } });
  });

  it.each([
    [3, 'email,fullName,password\na@example.com,A,Geheim-4711\n', 'has a column that is not known, number 3'],
    [3, 'fullName\nA\n', 'does not name the column email'],
    [3, 'email,E-Mail\na@example.com,b\n', 'names a column twice'],
    [3, '', 'is empty'],
    [1, 'email,fullName\na@example.com,"A\n', 'is not CSV from line'],
  ])('%i: is said in one line where it is the file itself: %j (CLI-16)', async (code, text, message) => {
    await app.setUp();
    const end = await importText(app, ['users'], text);
    expect([end.code, end.stdout, end.stderr.includes(message)]).toEqual([code, '', true]);
    expect(end.stderr.split('\n')).toHaveLength(2);
    expect(end.stderr).not.toContain('4711');
  });

  it('3: is for an organization that is here; 2: has to be named; 1: has to be there (CLI-6, CLI-16)', async () => {
    const without = await importText(app, ['users'], 'email\na@example.com\n');
    expect([without.code, without.stderr]).toEqual([
      3,
      'latchkey: This store has no organization: latchkey org create makes one\n',
    ]);
    expect((await latchkey(['import', 'users'])).code).toBe(2);
    const { code, stderr } = await importText({ dataDir: app.dataDir }, ['users', '--dry-run'], '');
    expect([code, stderr.includes('is empty')]).toEqual([3, true]);
  });
});

describe('latchkey import users, where a member claims an address of the file', () => {
  it('0: the member loses it, and gets nothing of what the file gives to its owner (ADDRESS-6)', async () => {
    const app = await startNow();
    const admin = await app.setUp();
    const member = await app.member(admin, 'grace@example.com');
    await member.patch(`/users/${member.userId}/email`, { email: 'ceo@example.com' });
    const report = await imported(app, ['users'], 'email,fullName,role\nCEO@example.com,Chief,admin');
    expect(report).toMatchObject({ users: { created: 1, updated: 0 }, problems: { count: 0 } });
    const { body } = await admin.get('/users/fetch/with-groups');
    const groups = body.map(({ email, groups }: Json) => [email, groups.map(({ name }: Json) => name).sort()]);
    expect(groups).toEqual([
      ['ada@example.com', ['admin', 'everyone']],
      ['grace@example.com', ['everyone']],
      ['ceo@example.com', ['admin', 'everyone']],
    ]);
    expect((await app.audit()).filter(({ action }) => action === 'user.email-given-back')).toHaveLength(1);
    await app.close();
  });
});
