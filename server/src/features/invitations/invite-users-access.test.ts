import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { holdNext } from '../../../test/support/gates.ts';
import { Inviting } from '../../../test/support/inviting.ts';
import { MailServer } from '../../../test/support/mail-server.ts';
import { requestText, sendRaw } from '../../../test/support/raw-http.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { type Client, type Json, organization, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const path = '/users/bulk/invite';
const anId = 'a'.repeat(24);

describe('POST /users/bulk/invite: who may', () => {
  let it1: Inviting;
  let member: Client;

  beforeAll(async () => {
    it1 = await Inviting.start();
    member = await it1.app.member(it1.admin, 'grace@example.com');
  });
  afterAll(() => it1.close());

  const adminGroup = async () => (await it1.admin.get('/userGroups?search=admin')).body.groups[0]._id as string;

  /**
   * Returns the state of the store that a rejected call must not change: all but the tokens and sessions of the test
   * itself.
   */
  const untouched = () => {
    const { users, group_members, one_time_links, outbox } = storedRows(it1.app);
    return { users, group_members, one_time_links, outbox, asked: [...it1.mail.asked] };
  };
  async function refused(client: Client, body: unknown): Promise<TestResponse> {
    // The notice of a new token goes out behind it; and so would mail of a refused call.
    const settled = () => it1.app.services.afterResponse.close();
    await settled();
    const before = untouched();
    const response = await client.post(path, body);
    await settled();
    expect(untouched()).toEqual(before);
    return response;
  }
  const scopeOf = ({ status, body, headers }: TestResponse) => [
    status,
    body.error.code,
    /scope="([^"]*)"/.exec(headers.get('www-authenticate') ?? '')?.[1],
  ];

  it('403: a token with user:invite alone may name no groups, not even none of them (INVITE-16, SCOPE-3)', async () => {
    const token = await it1.admin.token({ scopes: ['user:invite'] });
    const { id } = await it1.newGroup();
    for (const groupIds of [[], [id], ['f'.repeat(24)]]) {
      const response = await refused(token, { emails: it1.fresh(1), groupIds });
      expect(scopeOf(response)).toEqual([403, 'INSUFFICIENT_SCOPE', 'usergroup:write']);
      expect(response.body.message).toBe('Insufficient scope. Required: usergroup:write');
    }
    expect((await it1.invite(it1.fresh(1), undefined, token)).status).toBe(200);
  });

  it('403: a token with usergroup:write, and without user:invite (SCOPE-13)', async () => {
    const token = await it1.admin.token({ scopes: ['usergroup:write', 'user:write', 'org:admin'] });
    const response = await refused(token, { emails: it1.fresh(1) });
    expect(scopeOf(response)).toEqual([403, 'INSUFFICIENT_SCOPE', 'user:invite']);
  });

  it('403: no token invites administrators, whatever its scopes; a session does (INVITE-16, LEAVER-1)', async () => {
    const { id, name } = await it1.newGroup();
    const tokens = [await it1.admin.token({ scopes: ['user:invite', 'usergroup:write'] }), await it1.admin.token()];
    for (const token of tokens) {
      const response = await refused(token, { emails: it1.fresh(1), groupIds: [id, await adminGroup()] });
      expect(scopeOf(response)).toEqual([403, 'FORBIDDEN', undefined]);
      expect(response.body.message).toMatch(/in a session/);
      const [email = ''] = it1.fresh(1);
      expect((await it1.invite([email], [id], token)).status).toBe(200);
      expect(await it1.groupsOf(await it1.idOf(email))).toEqual(['everyone', name].sort());
    }
    const [email = ''] = it1.fresh(1);
    expect((await it1.invite([email], [await adminGroup()])).status).toBe(200);
    expect(await it1.groupsOf(await it1.idOf(email))).toEqual(['admin', 'everyone']);
  });

  it.each<[string, Json]>([
    ['nothing', undefined],
    ['input that is not valid', { emails: 1 }],
    ['good input', { emails: ['x@example.com'] }],
  ])('403: a member learns nothing, with %s (A1, HTTP-2)', async (_, body) => {
    for (const client of [member, await member.token()]) {
      const response = await refused(client, body);
      expect([response.status, response.body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
    }
  });

  it('403, and no one is invited, for anyone who ceases to be an administrator meanwhile (AUTH-29)', async () => {
    const other = await it1.app.member(it1.admin, 'other@example.com');
    await it1.app.promote(other.userId);
    const gate = holdNext(it1.app.services.db, 'transaction');
    const response = it1.invite(it1.fresh(1), undefined, other);
    await gate.arrived;
    await it1.app.demote(other.userId);
    const before = untouched();
    gate.open();
    expect([(await response).status, untouched()]).toEqual([403, before]);
  });

  it('429: after 60 requests to invite in a minute, by one person (ERR-24)', async () => {
    const limited = await Inviting.start({ RATE_LIMIT: 'on' });
    const statuses = await Promise.all(
      Array.from({ length: 61 }, async () => (await limited.invite(['ada@example.com'])).status),
    );
    expect(statuses.sort((a, b) => a - b)).toEqual([...Array.from({ length: 60 }, () => 409), 429]);
    const { userId } = limited.admin;
    for (const route of ['resend-invite', 'invite-link']) {
      expect((await limited.admin.post(`/users/${userId}/${route}`)).status).toBe(429);
    }
    await limited.close();
  });

  it('200: the link is of the configuration, whatever Host the request names (MAIL-5)', async () => {
    const emails = it1.fresh(1);
    const body = JSON.stringify({ emails });
    const headers = [
      'Host: evil.example',
      `Authorization: Bearer ${it1.admin.credential}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ];
    const { answers: responses } = await sendRaw(it1.app, requestText(`POST /api/v1${path} HTTP/1.1`, headers, body));
    expect(responses.map(({ status }) => status)).toEqual([200]);
    expect(it1.mailTo(emails[0] ?? '').raw).not.toContain('evil');
  });
});

describe('POST /users/bulk/invite and /users/:id/resend-invite: where it cannot be', () => {
  let mail: MailServer;
  let app: TestApp | undefined;
  const open = async (account: Json, environment: Record<string, string>) => {
    app = await TestApp.start(environment);
    await app.anonymous.post('/org', { ...organization, ...account });
    return app.signIn(organization.contactEmail);
  };

  beforeAll(async () => {
    mail = await MailServer.start();
  });
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });
  afterAll(() => mail.stop());

  /**
   * Calls both routes with valid and invalid input, input that is not JSON and none at all, for existing and unknown
   * users.
   */
  async function everyCall(client: Client): Promise<readonly TestResponse[]> {
    const headers = { 'content-type': 'application/json' };
    return Promise.all([
      client.post(path, { emails: ['x@example.com'] }),
      client.post(path, { emails: ['x@example.com'], groupIds: [anId] }),
      client.post(path, { emails: 1 }),
      client.post(path),
      client.call('POST', path, { raw: '{"emails":', headers }),
      client.post(`/users/${client.userId}/resend-invite`),
      client.post(`/users/${anId}/resend-invite`),
      client.post('/users/not-an-id/resend-invite'),
    ]);
  }

  it('403: an individual account, before mail and input are looked at (INVITE-2, INVITE-21, HTTP-3)', async () => {
    for (const environment of [{}, { SMTP_URL: mail.url }]) {
      const admin = await open({ accountType: 'individual' }, environment);
      for (const { status, body } of await everyCall(admin)) {
        expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
        expect(body.message).toContain('business');
      }
      await app?.close();
      app = undefined;
    }
  });

  it('400: without mail, in words that name the setting, before input is looked at (INVITE-2, INVITE-21, MAIL-1, HTTP-3)', async () => {
    const admin = await open({}, {});
    for (const { status, body } of await everyCall(admin)) {
      expect([status, body.error.code]).toEqual([400, 'BAD_REQUEST']);
      expect(body.message).toMatch(/SMTP_URL.*\/settings\/smtp/);
    }
    expect(await admin.get('/users')).toMatchObject({ body: [{ email: organization.contactEmail }] });
  });

  it('403: a member, and a token without the scope, before any of that (HTTP-2, HTTP-3)', async () => {
    const admin = await open({ accountType: 'individual' }, {});
    const member = await app?.member(admin, 'grace@example.com');
    for (const response of member ? await everyCall(member) : []) {
      expect([response.status, response.body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
    }
    for (const response of await everyCall(await admin.token({ scopes: ['user:read'] }))) {
      expect([response.status, response.body.error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
    }
  });
});
