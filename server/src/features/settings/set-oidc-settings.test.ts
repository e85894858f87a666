import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { outcomeOf } from '../../../test/support/browser.ts';
import {
  allowOidc,
  callbackUrl,
  clientId,
  clientSecret,
  OidcServer,
  publicUrl,
  RunningClock,
} from '../../../test/support/oidc-server.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { dropSharedKeys } from '../../../test/support/stored-keys.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const path = '/settings/oidc';

describe('PUT /settings/oidc', () => {
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;
  let good: { issuer: string; clientId: string; clientSecret: string; allowedDomains: string[]; groupIds: string[] };

  beforeAll(async () => {
    provider = await OidcServer.start();
    app = await TestApp.start({ BASE_URL: publicUrl }, new RunningClock());
    admin = await app.setUp();
    good = { issuer: provider.issuer, clientId, clientSecret, allowedDomains: ['example.com'], groupIds: [] };
    // Only what is configured can be allowed, and only what is allowed makes accounts.
    await admin.put(path, good);
    await allowOidc(admin);
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });
  beforeEach(async () => {
    await admin.delete(path);
  });

  const storedSetting = () => storedRows(app)['settings']?.find(({ name }) => name === 'oidc')?.content;
  let newUsers = 0;
  const arrive = async () => {
    newUsers += 1;
    const email = `new${newUsers}@example.com`;
    return outcomeOf(await provider.walk(app, { sub: email, email, email_verified: true, name: 'New' }));
  };
  const newGroup = async (name: string) =>
    (await admin.post('/userGroups', { name, type: 'custom' })).body._id as string;
  const groupsOfNewUser = async (): Promise<string[]> => {
    await arrive();
    const { userId } = (await app.events()).at(-1).payload;
    return (await admin.get(`/userGroups/users/${userId}`)).body.map(({ name }: Json) => name);
  };

  it('200: holds at once, and the answer has all but the secret (AUTH-48, AUTH-58, AUDIT-5)', async () => {
    expect(await arrive()).toEqual({ error: 'not_configured' });
    const { status, body, text } = await admin.put(path, good);
    const { clientSecret: _, ...shown } = good;
    expect(status).toBe(200);
    expect(body).toEqual({
      configured: true,
      source: 'stored',
      ...shown,
      hasClientSecret: true,
      emailTrust: 'claim',
      redirectUri: callbackUrl,
      note: null,
      updatedBy: admin.userId,
      updatedAt: expect.any(String),
      confirmedBy: null,
      needsReview: false,
    });
    expect(text).not.toContain(clientSecret);
    expect((await admin.get(path)).body).toEqual(body);
    expect(await arrive()).toHaveProperty('oidc');
  });

  it('200: allowedDomains and groupIds may be left out, and are none then (AUTH-58)', async () => {
    const { issuer } = good;
    const { status, body } = await admin.put(path, { issuer, clientId, clientSecret });
    expect([status, body.allowedDomains, body.groupIds]).toEqual([200, [], []]);
    expect(await arrive()).toEqual({ error: 'no_account' });
  });

  it('200: emailTrust is shown, recorded, and claim where it is left out (FIT-1)', async () => {
    const user = { sub: 'entra', email: 'entra@example.com', name: 'New' };
    await admin.put(path, good);
    expect(outcomeOf(await provider.walk(app, user))).toEqual({ error: 'email_not_verified' });
    expect((await admin.put(path, { ...good, emailTrust: 'issuer' })).body.emailTrust).toBe('issuer');
    expect((await app.audit()).at(-1).changes).toEqual({ emailTrust: { before: 'claim', after: 'issuer' } });
    expect(outcomeOf(await provider.walk(app, user))).toHaveProperty('oidc');
    expect((await admin.put(path, good)).body.emailTrust).toBe('claim');
  });

  it('200: a domain in other letters (AUTH-58)', async () => {
    expect((await admin.put(path, { ...good, allowedDomains: ['EXAMPLE.com'] })).body.allowedDomains).toEqual([
      'example.com',
    ]);
    expect(await arrive()).toHaveProperty('oidc');
  });

  it('200: is stored encrypted, and the secret is in no log, audit row or answer (AUDIT-5, AUDIT-6)', async () => {
    await admin.put(path, good);
    await arrive();
    await admin.get(path);
    expect(storedSetting()).not.toContain(good.issuer);
    expect(JSON.stringify(storedRows(app))).not.toContain(clientSecret);
    expect(app.logLines.join('\n')).not.toContain(clientSecret);
  });

  it('200: the audit row says what was set, without the secret (AUDIT-1, AUDIT-5)', async () => {
    await admin.put(path, good);
    const { changes: _, ...row } = (await app.audit()).at(-1);
    expect(row).toMatchObject({ action: 'settings.oidc-set', actor_user_id: admin.userId, details: {} });
    await admin.put(path, { ...good, clientSecret: 'another-secret-4711', allowedDomains: [] });
    expect((await app.audit()).at(-1).changes).toEqual({
      allowedDomains: { before: good.allowedDomains, after: [] },
      clientSecret: { before: '[secret]', after: '[secret]' },
    });
  });

  it('200: without a secret the stored one stays, for the same issuer and client (AUTH-58)', async () => {
    await admin.put(path, good);
    const { clientSecret: _, ...again } = good;
    const { status } = await admin.put(path, { ...again, allowedDomains: [] });
    expect(status).toBe(200);
    await admin.put(path, again);
    expect(await arrive()).toHaveProperty('oidc');
  });

  it.each([
    ['another issuer', { issuer: 'https://evil.example.com' }],
    ['the issuer with a slash', { issuer: 'slash' }],
    ['another client', { clientId: 'other' }],
    ['a client in other letters', { clientId: 'Latchkey' }],
  ])('400: without a secret for %s, and nothing changes: the secret goes to no one new (AUTH-58)', async (_, other) => {
    await admin.put(path, good);
    const before = storedSetting();
    const { clientSecret: __, ...again } = { ...good, ...other };
    if (again.issuer === 'slash') again.issuer = `${good.issuer}/`;
    const { status, body } = await admin.put(path, again);
    expect([status, body.error.details[0].field]).toEqual([400, 'body.clientSecret']);
    expect(storedSetting()).toBe(before);
  });

  it('400: without a secret where none is stored (AUTH-58)', async () => {
    const { clientSecret: _, ...without } = good;
    const { status, body } = await admin.put(path, without);
    expect([status, body.error.details]).toEqual([
      400,
      [{ field: 'body.clientSecret', message: 'is required with this issuer and clientId' }],
    ]);
  });

  it.each<[string, string, Record<string, unknown>]>([
    ['plain HTTP to another machine', 'issuer', { issuer: 'http://id.example.com' }],
    ['plain HTTP to what begins like this one', 'issuer', { issuer: 'http://127.0.0.1.evil.example.com' }],
    ['plain HTTP to what begins like its name', 'issuer', { issuer: 'http://localhost.evil.example.com' }],
    ['a name that looks like this machine', 'issuer', { issuer: 'http://localhost@evil.example.com' }],
    ['a password', 'issuer', { issuer: 'https://user:pass@id.example.com' }],
    ['a query', 'issuer', { issuer: 'https://id.example.com/?a=b' }],
    ['a fragment', 'issuer', { issuer: 'https://id.example.com/#x' }],
    ['another protocol', 'issuer', { issuer: 'ftp://id.example.com' }],
    ['a script', 'issuer', { issuer: 'javascript:alert(1)' }],
    ['nothing', 'issuer', { issuer: '' }],
    ['no value', 'issuer', { issuer: undefined }],
    ['nothing', 'clientId', { clientId: '' }],
    ['501 characters', 'clientId', { clientId: 'x'.repeat(501) }],
    ['no value', 'clientId', { clientId: undefined }],
    ['nothing', 'clientSecret', { clientSecret: '' }],
    ['2,001 characters', 'clientSecret', { clientSecret: 'x'.repeat(2_001) }],
    ['null', 'clientSecret', { clientSecret: null }],
    ['a text', 'allowedDomains', { allowedDomains: 'example.com' }],
    ['a domain of one label', 'allowedDomains.0', { allowedDomains: ['com'] }],
    ['a pattern', 'allowedDomains.0', { allowedDomains: ['*.example.com'] }],
    ['an @', 'allowedDomains.0', { allowedDomains: ['@example.com'] }],
    ['two domains in one text', 'allowedDomains.0', { allowedDomains: ['example.com,evil.example'] }],
    ['101 domains', 'allowedDomains', { allowedDomains: Array.from({ length: 101 }, () => 'example.com') }],
    ['another word', 'emailTrust', { emailTrust: 'all' }],
    [
      'all addresses of a public provider',
      'emailTrust',
      { issuer: 'https://accounts.google.com', emailTrust: 'issuer' },
    ],
    ['every tenant', 'issuer', { issuer: 'https://login.microsoftonline.com/common/v2.0' }],
    ['every tenant of an organization', 'issuer', { issuer: 'https://login.microsoftonline.com/Organizations/v2.0' }],
    ['no id', 'groupIds.0', { groupIds: ['x'] }],
    ['101 ids', 'groupIds', { groupIds: Array.from({ length: 101 }, () => 'a'.repeat(24)) }],
  ])('400: %s in %s, and nothing changes (AUTH-58)', async (_, field, wrong) => {
    await admin.put(path, good);
    const before = storedRows(app);
    const { status, body, text } = await admin.put(path, { ...good, ...wrong });
    expect([status, body.error.details[0].field]).toEqual([400, `body.${field}`]);
    expect(text).not.toContain(clientSecret);
    expect(storedRows(app)).toEqual(before);
  });

  it('400: groups that are not there, named in the answer (AUTH-58)', async () => {
    const gone = await newGroup('Gone');
    await admin.delete(`/userGroups/${gone}`);
    const { status, text } = await admin.put(path, { ...good, groupIds: [gone, 'f'.repeat(24)] });
    expect(status).toBe(400);
    expect(text).toContain(gone);
    expect(text).toContain('f'.repeat(24));
  });

  it('200: newcomers are in the groups, those of since deleted groups left out (AUTH-48, AUTH-58)', async () => {
    const [staff, later] = [await newGroup('Staff'), await newGroup('Deleted later')];
    await admin.put(path, { ...good, groupIds: [staff, later.toUpperCase(), staff] });
    await admin.delete(`/userGroups/${later}`);
    expect((await groupsOfNewUser()).toSorted()).toEqual(['Staff', 'everyone']);
  });

  it('200: no one becomes an administrator, or is in everyone twice, by groupIds (AUTH-58)', async () => {
    const { body } = await admin.get('/userGroups?limit=100');
    const idOf = (type: string) => body.groups.find((group: Json) => group.type === type)._id;
    const groupIds = [idOf('admin'), idOf('everyone'), idOf('standard')];
    expect((await admin.put(path, { ...good, groupIds })).status).toBe(200);
    expect((await groupsOfNewUser()).toSorted()).toEqual(['everyone', 'standard']);
  });

  it('200: anyone who has an account is put into no group (AUTH-58)', async () => {
    const staff = await newGroup('For newcomers');
    await admin.put(path, { ...good, groupIds: [staff] });
    await admin.post('/users', { fullName: 'Old', email: 'old@example.com' });
    const page = await provider.walk(app, { sub: 'old', email: 'old@example.com', email_verified: true });
    expect(outcomeOf(page)).toHaveProperty('oidc');
    expect((await admin.get(`/userGroups/${staff}`)).body.users).toEqual([]);
  });

  it('403: for a member, and for a token of whatever scopes (AUDIT-4, SCOPE-27)', async () => {
    const member = await app.member(admin, 'member@example.com');
    expect((await member.put(path, good)).body.error.code).toBe('ADMIN_REQUIRED');
    expect((await (await admin.token()).put(path, good)).body.error.code).toBe('FORBIDDEN');
    expect(storedSetting()).toBeUndefined();
  });

  it('200: settings that cannot be read with the present key can be set anew', async () => {
    await admin.put(path, good);
    const { environment, dataDir } = app;
    await app.stop();
    dropSharedKeys(app);
    const other = { ...environment, DATA_DIR: dataDir, ENCRYPTION_KEY: '0123456789abcdef'.repeat(4) };
    app = await TestApp.start(other, new RunningClock());
    admin = await app.signIn('ada@example.com');
    const unreadable = (await admin.get(path)).body;
    expect([unreadable.configured, unreadable.issuer]).toEqual([false, null]);
    expect(unreadable.note).toContain('ENCRYPTION_KEY');
    expect(await arrive()).toEqual({ error: 'not_configured' });
    const { clientSecret: _, ...without } = good;
    expect((await admin.put(path, without)).status).toBe(400);
    expect((await admin.put(path, good)).body.configured).toBe(true);
    expect(await arrive()).toHaveProperty('oidc');
  });
});
