import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { routes } from '../../src/routes.gen.ts';
import { onePixel } from '../support/made-pictures.ts';
import { MailServer } from '../support/mail-server.ts';
import { OidcServer } from '../support/oidc-server.ts';
import { RawConnection } from '../support/raw-http.ts';
import { nextTurn, storedRows } from '../support/second-connection.ts';
import { registerService } from '../support/service-clients.ts';
import { stepsOf } from '../support/sign-in-desk.ts';
import { addLetter, addRelay, unserved } from '../support/stored-relays.ts';
import { type Client, type Json, password, TestApp } from '../support/test-app.ts';
import { registerWebhook } from '../support/webhooks.ts';

/** A writing call, by its route, in which everything is right. */
interface Write {
  readonly route: string;
  readonly path: string;
  readonly body?: Json;
  /** Told apart from the same call on somebody else. */
  readonly onSelf?: true;
  /** Of a route that everybody may call for themselves: done for somebody else. */
  readonly needsAdmin?: true;
}

const newPassword = 'Brand-New-Horse-8';

function form(): { type: string; bytes: Buffer } {
  const head = '--edge\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\n';
  const bytes = Buffer.concat([Buffer.from(head), onePixel(), Buffer.from('\r\n--edge--\r\n')]);
  return { type: 'multipart/form-data; boundary=edge', bytes };
}

describe('what changes between admission and the end of a body (AUTH-27, STORE-7)', () => {
  let mails: MailServer;
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;
  /** An administrator who need not stay one. */
  let caller: Client;
  let writes: readonly Write[];
  /** How much of what finds out who calls is under way. */
  let asked = 0;

  function counted<T>(answer: Promise<T>): Promise<T> {
    asked += 1;
    return answer.finally(() => {
      asked -= 1;
    });
  }

  beforeAll(async () => {
    provider = await OidcServer.start();
  });
  afterAll(() => provider.stop());

  beforeEach(async () => {
    mails = await MailServer.start();
    app = await TestApp.start({ SMTP_URL: mails.url, OUTBOUND_NETWORKS: '127.0.0.1' });
    const { db } = app.services;
    const { freshen, first } = db;
    db.freshen = () => {
      const fresh = freshen();
      return fresh && counted(fresh);
    };
    db.first = (query, given) => counted(first(query, given));
    admin = await app.setUp();
    caller = await app.member(admin, 'grace@example.com');
    await app.promote(caller.userId);
    const other = await app.member(admin, 'other@example.com');
    const victim = await app.member(admin, 'victim@example.com');
    const gone = await app.member(admin, 'gone@example.com');
    await app.deleteUser(gone.userId);
    const team = async (name: string) => (await caller.post('/teams', { name })).body.team.id;
    const [kept, dropped] = [await team('Kept'), await team('Dropped')];
    const { tokenId: ownToken } = await caller.token();
    const { tokenId: foreignToken } = await other.token();
    const picture = new Uint8Array(onePixel());
    for (const path of ['/org/logo', '/users/dp']) await caller.upload(path, picture);
    const groupId = (await admin.post('/userGroups', { name: 'Group', type: 'custom' })).body._id;
    const newcomer = async (email: string) => (await admin.post('/users', { fullName: 'New', email })).body._id;
    const [reached, handed] = [await newcomer('reached@example.com'), await newcomer('handed@example.com')];
    await admin.post('/users/bulk/invite', { emails: ['unwanted@example.com'] });
    const { users } = (await admin.get('/users?search=unwanted')).body;
    const oidc = { issuer: provider.issuer, clientId: 'latchkey', clientSecret: 'secret-of-tests' };
    await admin.put('/settings/oidc', oidc);
    const { clientId } = await registerService(admin);
    // Nobody listens there, and nothing is sent to those that are off.
    const webhook = { url: 'http://127.0.0.1:9/' };
    const [known, ended] = [await registerWebhook(admin, webhook.url), await registerWebhook(admin, webhook.url)];
    for (const { id } of [known, ended]) await admin.patch(`/webhooks/${id}`, { enabled: false });
    await app.signIn('grace@example.com');
    const { sessions } = (await caller.get('/userAccount/sessions')).body;
    const elsewhere = sessions.find(({ isCurrent }: Json) => !isCurrent).id;
    await addRelay(app);
    const letters = [await addLetter(app, 1), await addLetter(app, 2)];
    const theirSessions = (await other.get('/userAccount/sessions')).body.sessions;
    const memberships = { userIds: [other.userId], groupIds: [groupId] };
    writes = [
      { route: 'PATCH /org', path: '/org', body: { shortName: 'Late' } },
      { route: 'PUT /org', path: '/org', body: { shortName: 'Later' } },
      { route: 'PUT /org/onboarding-status', path: '/org/onboarding-status', body: { status: 'skipped' } },
      { route: 'PUT /org/logo', path: '/org/logo' },
      { route: 'DELETE /org/logo', path: '/org/logo' },
      { route: 'PUT /users/dp', path: '/users/dp' },
      { route: 'DELETE /users/dp', path: '/users/dp' },
      { route: 'POST /users', path: '/users', body: { fullName: 'Late', email: 'late@example.com' } },
      ...['fullname', 'firstName', 'lastName', 'designation', 'email'].flatMap((field): Write[] => {
        const body = { [field === 'fullname' ? 'fullName' : field]: `late-${field}@example.com` };
        const route = `PATCH /users/:id/${field}`;
        return [
          { route, path: `/users/${other.userId}/${field}`, body },
          {
            route,
            path: `/users/${caller.userId}/${field}`,
            body: { ...body, email: 'self@example.com' },
            onSelf: true,
          },
        ];
      }),
      { route: 'PUT /users/:id', path: `/users/${other.userId}`, body: { email: 'put@example.com' } },
      { route: 'PUT /users/:id', path: `/users/${caller.userId}`, body: { email: 'me@example.com' }, onSelf: true },
      {
        route: 'DELETE /users/:id/sessions/:sessionId',
        path: `/users/${other.userId}/sessions/${theirSessions[0].id}`,
      },
      { route: 'DELETE /users/:id/sessions', path: `/users/${other.userId}/sessions` },
      { route: 'PUT /users/:id/unblock', path: `/users/${other.userId}/unblock` },
      { route: 'DELETE /users/:id', path: `/users/${victim.userId}` },
      { route: 'POST /users/:id/restore', path: `/users/${gone.userId}/restore` },
      { route: 'POST /userGroups', path: '/userGroups', body: { name: 'Late', type: 'custom' } },
      { route: 'PUT /userGroups/:groupId', path: `/userGroups/${groupId}`, body: { name: 'Later' } },
      { route: 'POST /userGroups/add-users', path: '/userGroups/add-users', body: memberships },
      { route: 'POST /userGroups/remove-users', path: '/userGroups/remove-users', body: memberships },
      { route: 'DELETE /userGroups/:groupId', path: `/userGroups/${groupId}` },
      { route: 'POST /teams', path: '/teams', body: { name: 'Late' } },
      { route: 'PUT /teams/:id', path: `/teams/${kept}`, body: { name: 'Later' } },
      { route: 'DELETE /teams/:id', path: `/teams/${dropped}` },
      { route: 'POST /personal-access-tokens', path: '/personal-access-tokens', body: { name: 'late' } },
      { route: 'DELETE /personal-access-tokens/:tokenId', path: `/personal-access-tokens/${ownToken}` },
      { route: 'DELETE /personal-access-tokens/admin/:tokenId', path: `/personal-access-tokens/admin/${foreignToken}` },
      {
        route: 'DELETE /users/:id/personal-access-tokens',
        path: `/users/${other.userId}/personal-access-tokens`,
      },
      {
        route: 'PUT /settings/smtp',
        path: '/settings/smtp',
        body: { host: 'smtp.example.com', from: 'late@example.com' },
      },
      { route: 'POST /settings/smtp/test', path: '/settings/smtp/test' },
      { route: 'DELETE /settings/smtp', path: '/settings/smtp' },
      { route: 'PUT /settings/oidc', path: '/settings/oidc', body: oidc },
      { route: 'POST /settings/oidc/test', path: '/settings/oidc/test' },
      { route: 'DELETE /settings/oidc', path: '/settings/oidc' },
      {
        route: 'POST /orgAuthConfig/updateAuthMethod',
        path: '/orgAuthConfig/updateAuthMethod',
        body: { authMethod: stepsOf(['password']) },
      },
      {
        route: 'POST /service-clients',
        path: '/service-clients',
        body: { name: 'late', scopes: ['USER_LOOKUP'] },
      },
      {
        route: 'POST /service-clients/:clientId/rotate',
        path: `/service-clients/${clientId}/rotate`,
        body: { graceSeconds: 60 },
      },
      { route: 'DELETE /service-clients/:clientId', path: `/service-clients/${clientId}` },
      {
        route: 'POST /events/dead-letters/requeue',
        path: '/events/dead-letters/requeue',
        body: { ids: [letters[0]] },
      },
      { route: 'POST /events/relays/replay', path: '/events/relays/replay', body: { relay: unserved, after: 0 } },
      { route: 'DELETE /events/dead-letters/:letterId', path: `/events/dead-letters/${letters[1]}` },
      { route: 'POST /webhooks', path: '/webhooks', body: webhook },
      { route: 'PATCH /webhooks/:webhookId', path: `/webhooks/${known.id}`, body: { description: 'Late' } },
      { route: 'POST /webhooks/:webhookId/rotate-secret', path: `/webhooks/${known.id}/rotate-secret` },
      { route: 'POST /webhooks/:webhookId/test', path: `/webhooks/${known.id}/test` },
      { route: 'POST /webhooks/:webhookId/replay', path: `/webhooks/${known.id}/replay`, body: { after: 0 } },
      { route: 'DELETE /webhooks/:webhookId', path: `/webhooks/${ended.id}` },
      { route: 'POST /userAccount/email/confirm', path: '/userAccount/email/confirm', onSelf: true },
      {
        route: 'POST /userAccount/email/confirm',
        path: '/userAccount/email/confirm',
        body: { userId: other.userId },
        needsAdmin: true,
      },
      { route: 'DELETE /userAccount/sessions/:id', path: `/userAccount/sessions/${elsewhere}` },
      { route: 'POST /users/bulk/invite', path: '/users/bulk/invite', body: { emails: ['guest@example.com'] } },
      { route: 'POST /users/:id/resend-invite', path: `/users/${reached}/resend-invite` },
      { route: 'POST /users/:id/invite-link', path: `/users/${handed}/invite-link` },
      { route: 'DELETE /users/:id/invitation', path: `/users/${users[0]._id}/invitation` },
      {
        route: 'POST /userAccount/password/reset',
        path: '/userAccount/password/reset',
        body: { currentPassword: password, newPassword },
      },
      { route: 'DELETE /org', path: '/org' },
    ];
  });
  afterEach(async () => {
    await app.close();
    await mails.stop();
  });

  /** Sends all but the end of a call; the answer comes when `finish` is called. */
  async function begin(client: Client, { route, path, body }: Write) {
    const [method = ''] = route.split(' ');
    const isUpload = method === 'PUT' && /\/(logo|dp)$/.test(path);
    const { type, bytes } = isUpload
      ? form()
      : { type: 'application/json', bytes: Buffer.from(JSON.stringify(body ?? {})) };
    const lines = [
      `${method} /api/v1${path} HTTP/1.1`,
      'host: x',
      `authorization: Bearer ${client.credential}`,
      `content-type: ${type}`,
      `content-length: ${bytes.length}`,
    ];
    const arrived = once(app.app.server, 'request');
    const connection = new RawConnection(app).send(`${lines.join('\r\n')}\r\n\r\n`).send(bytes.subarray(0, -1));
    await arrived;
    return {
      finish: async () => {
        connection.send(bytes.subarray(-1));
        const { answers } = await connection.until((seen) => seen.answers.length > 0);
        connection.destroy();
        return `${answers[0]?.status} ${answers[0]?.body?.error?.code ?? 'done'}`;
      },
    };
  }

  /** Waits until nothing is asked of the store any more: then all that have begun are let in, and wait for their ends. */
  async function admitted(): Promise<void> {
    await nextTurn();
    await vi.waitUntil(() => asked === 0, { interval: 1 });
  }

  /** Begins the calls, lets something happen, and ends them one after another. */
  async function around(client: Client, some: readonly Write[], act: () => Promise<unknown>) {
    const begun: Awaited<ReturnType<typeof begin>>[] = [];
    for (const write of some) begun.push(await begin(client, write));
    await admitted();
    await act();
    const before = storedRows(app);
    const outcomes: string[] = [];
    for (const { finish } of begun) outcomes.push(await finish());
    return { outcomes, isUnchanged: JSON.stringify(storedRows(app)) === JSON.stringify(before) };
  }

  const deleteCaller = async () => {
    await app.demote(caller.userId);
    await app.deleteUser(caller.userId);
  };
  const signInAgain = async (email: string) => {
    const { body } = await app.signInTokens(email, newPassword);
    caller = app.with(body.accessToken);
  };
  const policyOf = ({ route }: Write) => routes.find(({ method, path }) => `${method} ${path}` === route)?.policy;
  const all = (outcome: string) => ({ outcomes: writes.map(() => outcome), isUnchanged: true });
  /** By a token, what takes a session only is refused before its body is waited for. */
  const allByToken = (outcome: string) => ({
    outcomes: writes.map((write) => {
      const policy = policyOf(write);
      return policy && 'sessionOnly' in policy ? '403 FORBIDDEN' : outcome;
    }),
    isUnchanged: true,
  });

  it('every route that writes for somebody is tried', () => {
    // The one only reads; the other ends nothing but the session itself, which may have ended already; agents are asked
    // for their credential again once the body is there.
    const apart = ['POST /users/by-ids', 'POST /userAccount/logout/manual', 'POST /mcp', 'POST /api/v1/mcp'];
    const writing = routes.filter(
      ({ method, policy }) => method !== 'GET' && ['member', 'admin', 'adminOrSelf'].includes(policy.who),
    );
    const titles = writing.map(({ method, path }) => `${method} ${path}`).filter((title) => !apart.includes(title));
    expect(new Set(writes.map(({ route }) => route))).toEqual(new Set(titles));
  });

  it('nothing: the gate itself refuses nobody, and what is asked for is done', async () => {
    for (const write of writes) {
      const { outcomes } = await around(caller, [write], async () => {});
      expect([write.route, outcomes[0]]).toEqual([write.route, expect.stringMatching(/^20[01] /)]);
      // It ends every session, the caller's own included (SESSION-1).
      if (write.route.endsWith('/password/reset')) await signInAgain('me@example.com');
    }
  });

  it('401: the organization is deleted (ORG-26)', async () => {
    expect(await around(caller, writes, () => app.deleteOrganization())).toEqual(all('401 TOKEN_INVALID'));
    const events = await app.events();
    expect(events.at(-1).event_type).toBe('orgDeleted');
  });

  it('401: the caller is deleted, by session and by token (AUTH-24)', async () => {
    const token = await caller.token();
    expect(await around(caller, writes, deleteCaller)).toEqual(all('401 TOKEN_INVALID'));
    await app.services.db.transaction((tx) =>
      tx.updateTable('users').set({ is_deleted: 0 }).where('id', '=', caller.userId).execute(),
    );
    await app.promote(caller.userId);
    expect(await around(token, writes, deleteCaller)).toEqual(allByToken('401 TOKEN_INVALID'));
  });

  it('401: the session is logged out (AUTH-18)', async () => {
    const logOut = () => caller.post('/userAccount/logout/manual');
    expect(await around(caller, writes, logOut)).toEqual(all('401 SESSION_EXPIRED'));
  });

  it('401: the token is revoked (PAT-16)', async () => {
    const token = await caller.token();
    const revoke = () => admin.delete(`/personal-access-tokens/admin/${token.tokenId}`);
    expect(await around(token, writes, revoke)).toEqual(allByToken('401 TOKEN_REVOKED'));
  });

  it('401: the token reaches its time (AUTH-22)', async () => {
    const token = await caller.token({ expiryDays: 30 });
    const wait = async () => app.clock.advance(31 * 86_400_000);
    expect(await around(token, writes, wait)).toEqual(allByToken('401 TOKEN_EXPIRED'));
  });

  it('403: the caller is demoted; what everybody may do of their own goes on (AUTH-29, AUTH-30)', async () => {
    const kindOf = (write: Write) => {
      if (write.needsAdmin) return 'admin';
      const who = policyOf(write)?.who ?? '';
      return who === 'adminOrSelf' && write.onSelf ? 'self' : who;
    };
    const needing = writes.filter((write) => !['member', 'self'].includes(kindOf(write)));
    const others = writes.filter((write) => !needing.includes(write));
    const refused = await around(caller, needing, () => app.demote(caller.userId));
    const code = { adminOrSelf: '403 FORBIDDEN' } as Record<string, string>;
    const expected = needing.map((write) => code[kindOf(write)] ?? '403 ADMIN_REQUIRED');
    expect(refused).toEqual({ outcomes: expected, isUnchanged: true });
    await app.promote(caller.userId);
    const done = await around(caller, others, () => app.demote(caller.userId));
    expect(done.outcomes).toEqual(others.map(() => expect.stringMatching(/^20[01] done$/)));
  });

  it('without the second look all of that would be done: a broken twin is caught', async () => {
    Object.assign(app.services, { confirm: async () => {} });
    // They need the organization's own record, and find out without the second look that it is gone; what a new password
    // ends has ended.
    const needing = ['POST /users/bulk/invite', 'POST /users/:id/resend-invite', 'POST /userAccount/password/reset'];
    needing.push('DELETE /userAccount/sessions/:id');
    const others = writes.filter(({ route }) => !needing.includes(route));
    const rest = writes.filter(({ route }) => needing.includes(route));
    const done = { statuses: new Set(['20']), isUnchanged: false };
    const tried = async (some: readonly Write[], act: () => Promise<unknown>) => {
      const { outcomes, isUnchanged } = await around(caller, some, act);
      return { statuses: new Set(outcomes.map((outcome) => outcome.slice(0, 2))), isUnchanged };
    };
    expect(await tried(rest, () => caller.post('/userAccount/logout/manual'))).toEqual(done);
    await signInAgain('grace@example.com');
    expect(await tried(others, () => app.deleteOrganization())).toEqual(done);
  });
});
