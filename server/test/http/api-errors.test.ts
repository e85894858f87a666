import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { apiErrors } from '../../src/base/api-errors.ts';
import { day, second } from '../../src/base/clock.ts';
import { type ApiErrorName, hasErrorMessage } from '../../src/base/errors.ts';
import { type Behaviour, FakeBackend, responding, silent } from '../support/fake-backend.ts';
import { compressedZeros, madePng, onePixel } from '../support/made-pictures.ts';
import { MailServer } from '../support/mail-server.ts';
import { RawConnection, requestText, sendRaw } from '../support/raw-http.ts';
import { secondConnection } from '../support/second-connection.ts';
import { basic, type RegisteredService, registerService } from '../support/service-clients.ts';
import { attemptSignIn, beginSignIn } from '../support/sign-in.ts';
import { stepsOf } from '../support/sign-in-desk.ts';
import { type Client, type Json, organization, password, TestApp } from '../support/test-app.ts';
import { registerWebhook } from '../support/webhooks.ts';

interface Refused {
  readonly status: number;
  readonly body: Json;
  /** A header of the answer; `undefined` without one. */
  readonly header: (name: string) => string | undefined;
}

const anId = 'a'.repeat(24);
const provider = { issuer: 'https://id.example.com', clientId: 'latchkey', clientSecret: 'secret-of-tests' };
const busyMs = 5 * second;

describe('every refusal is reached, and answered as the table says (ERR-2, ERR-11, ERR-17, ERR-20, ERR-22, ERR-23)', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let limited: TestApp;
  let slow: RawConnection;
  let backend: FakeBackend;
  let behind: TestApp;
  let asker: Client;
  let hanging: Promise<Refused>;
  let mails: MailServer;
  let mailing: TestApp;
  let inviter: Client;
  let plain: TestApp;
  let connector: RegisteredService;

  beforeAll(async () => {
    app = await TestApp.start({}, undefined, { isHashDear: true });
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    connector = await registerService(admin, ['USER_LOOKUP']);
    limited = await TestApp.start({ RATE_LIMIT: 'on' });
    await limited.setUp();
    // Begun here, because it takes its time.
    slow = new RawConnection(app).send('GET / HTTP/1.1\r\n');
    backend = await FakeBackend.start(silent);
    behind = await TestApp.start({ CONNECTOR_BACKEND_URL: backend.url });
    asker = await behind.setUp();
    hanging = call(asker, 'GET', '/users/graph/list');
    await vi.waitUntil(() => backend.requests.length === 1);
    mails = await MailServer.start();
    mailing = await TestApp.start({ SMTP_URL: mails.url });
    inviter = await mailing.setUp();
    plain = await TestApp.start({ SMTP_URL: mails.url, INVITE_LINKS: 'off' });
    await plain.anonymous.post('/org', { ...organization, accountType: 'individual' });
  });
  afterAll(async () => {
    slow.destroy();
    await app.close();
    await limited.close();
    await behind.close();
    await mailing.close();
    await plain.close();
    await mails.stop();
    await backend.stop();
  });

  async function call(client: Client, ...given: Parameters<Client['call']>): Promise<Refused> {
    const { status, body, headers } = await client.call(...given);
    return { status, body, header: (name) => headers.get(name) ?? undefined };
  }

  async function raw(bytes: string): Promise<Refused> {
    const [response] = (await sendRaw(app, bytes)).answers;
    return { status: response?.status ?? 0, body: response?.body, header: (name) => response?.headers[name] };
  }

  /** Asks for something of a connector backend that behaves like this. */
  async function asking(behave: Behaviour, ...[method, path, options]: Parameters<Client['call']>): Promise<Refused> {
    backend.behave = behave;
    return call(asker, method, path, options);
  }

  const open = 'GET /api/v1/org/exists HTTP/1.1';
  const newUser = (email: string) => ({ body: { fullName: 'Ann', email } });
  const signIn = (of: TestApp, secret: string) => attemptSignIn(of, { email: 'ada@example.com', password: secret });

  /** Uploads these bytes as the caller's own picture, under a good label. */
  async function upload(bytes: Buffer): Promise<Refused> {
    const { status, body, headers } = await member.upload('/users/dp', new Uint8Array(bytes));
    return { status, body, header: (name) => headers.get(name) ?? undefined };
  }

  /** Calls with a token that something happened to. */
  async function ended(spoil: (client: Client, tokenId: string) => Promise<unknown>): Promise<Refused> {
    const client = await member.token({ expiryDays: 30 });
    await spoil(client, client.tokenId);
    return call(client, 'GET', '/users');
  }

  /** Invites a user by mail. */
  const invite = (email: string, client = inviter) =>
    call(client, 'POST', '/users/bulk/invite', { body: { emails: [email] } });

  /** The outcome of a call while the mail server refuses every recipient. */
  async function unmailed(what: () => Promise<Refused>): Promise<Refused> {
    mails.faults = { refuse: () => 550 };
    const refused = await what();
    mails.faults = {};
    return refused;
  }

  /** Asks an OAuth endpoint for something, as a service by HTTP Basic. */
  const asService = (path: string, body: Json, by = connector) =>
    call(app.anonymous, 'POST', `/oauth2/${path}`, { body, headers: basic(by) });

  const setSteps = (method: 'password' | 'otp' | 'oidc') =>
    call(admin, 'POST', '/orgAuthConfig/updateAuthMethod', { body: { authMethod: stepsOf([method]) } });

  async function systemGroup(name: string): Promise<string> {
    const { groups } = (await admin.get('/userGroups')).body;
    return groups.find((group: Json) => group.type === name)._id;
  }

  const cases: Record<ApiErrorName, () => Promise<Refused>> = {
    invalidInput: () => call(admin, 'POST', '/users', { body: {} }),
    configurationWrong: async () => {
      app.environment['LOG_LEVEL'] = 'loud';
      const refused = await call(app.service(['FETCH_CONFIG']), 'POST', '/users/updateAppConfig');
      delete app.environment['LOG_LEVEL'];
      return refused;
    },
    originForeign: () => call(admin, 'POST', '//mcp', { body: {}, headers: { origin: 'https://evil.example' } }),
    oidcNotConfigured: () => call(admin, 'POST', '/settings/oidc/test'),
    signInLocksOut: () => setSteps('otp'),
    signOnNotProved: async () => {
      await admin.put('/settings/oidc', provider);
      const refused = await setSteps('oidc');
      expect((await admin.delete('/settings/oidc')).status).toBe(200);
      return refused;
    },
    clientNamedTwice: () => asService('token', { grant_type: 'client_credentials', client_secret: 'x' }),
    grantUnsupported: () => asService('token', { grant_type: 'password' }),
    serviceScopeInvalid: () => asService('token', { grant_type: 'client_credentials', scope: 'EVENTS_READ' }),
    doubledHeader: () => raw(requestText(open, ['Host: a', 'Host: b'])),
    unreadableRequest: () => raw('nonsense\r\n\r\n'),
    hostMissing: () => raw(requestText(open, [])),
    everyoneStays: async () => {
      const body = { userIds: [member.userId], groupIds: [await systemGroup('everyone')] };
      return call(admin, 'POST', '/userGroups/remove-users', { body });
    },
    connectorUsersFailed: () => asking(responding(500), 'GET', '/users/graph/list'),
    connectorTeamsFailed: () => asking(responding(404), 'GET', '/users/teams/list'),
    connectorRefused: () => asking(responding(400), 'POST', '/teams', { body: { name: 'x' } }),
    inviteAccepted: () => call(inviter, 'POST', `/users/${inviter.userId}/resend-invite`),
    mailNotConfigured: () => invite('guest@example.com', admin),
    pictureEmpty: () => upload(Buffer.alloc(0)),
    pictureTooLarge: () => upload(madePng(10_000, 10_000, { rows: compressedZeros(10_000 * 10_001) })),
    pictureUndecodable: () => upload(onePixel().subarray(0, -20)),
    scopeNotGrantable: () => call(admin, 'POST', '/personal-access-tokens', { body: { name: 'x', scopes: ['none'] } }),
    tokenAdministratorRequired: () => call(member, 'GET', '/personal-access-tokens/admin'),

    credentialMissing: () => call(app.anonymous, 'GET', '/users'),
    clientInvalid: () => asService('revoke', { token: 'x' }, { ...connector, clientSecret: 'wrong' }),
    clientNeedsSecret: () => call(app.with('token'), 'POST', '/oauth2/introspect', { body: { token: 'x' } }),
    signInRefused: async () => {
      const { status, body, headers } = await signIn(app, 'Wrong-Horse-7');
      return { status, body, header: (name) => headers.get(name) ?? undefined };
    },
    signInNotStarted: () =>
      call(app.anonymous, 'POST', '/userAccount/authenticate', { body: { method: 'password', credentials: {} } }),
    tokenInvalid: () => call(app.with('unknown'), 'GET', '/users'),
    tokenExpired: async () => {
      const refused = await ended(async () => app.clock.advance(31 * day));
      app.clock.advance(-31 * day);
      return refused;
    },
    tokenRevoked: () => ended((_, tokenId) => member.delete(`/personal-access-tokens/${tokenId}`)),
    sessionExpired: async () => {
      const session = await app.signIn('grace@example.com');
      await session.post('/userAccount/logout/manual');
      return call(session, 'GET', '/users');
    },

    scopeMissing: async () => call(await admin.token({ scopes: ['org:read'] }), 'GET', '/users'),
    administratorRequired: () => call(member, 'POST', '/users', newUser('ann@example.com')),
    introspectionNotAllowed: () => asService('introspect', { token: 'x' }),
    businessRequired: async () => invite('guest@example.com', await plain.signIn('ada@example.com')),
    inviteLinksOff: async () => call(await plain.signIn('ada@example.com'), 'POST', `/users/${anId}/invite-link`),
    groupManaged: async () => call(admin, 'DELETE', `/userGroups/${await systemGroup('standard')}`),
    teamRightMissing: async () => {
      const { id } = (await member.post('/teams', { name: 'Research' })).body.team;
      return call(admin, 'PUT', `/teams/${id}`, { body: { name: 'Mine' } });
    },
    connectorForbidden: () => asking(responding(403), 'DELETE', `/teams/${anId}`),
    administratorOrSelfRequired: () =>
      call(member, 'PATCH', `/users/${admin.userId}/designation`, { body: { designation: 'Boss' } }),
    sessionRequired: async () => call(await member.token(), 'POST', '/userAccount/logout/manual'),
    clientOfOthers: async () => {
      const { clientId } = await registerService(admin);
      return call(await admin.token(), 'POST', `/service-clients/${clientId}/rotate`);
    },
    administratorBySession: async () => {
      const body = { userIds: [member.userId], groupIds: [await systemGroup('admin')] };
      return call(await admin.token(), 'POST', '/userGroups/add-users', { body });
    },
    webhookOfOthers: async () => {
      const { id } = await registerWebhook(admin, 'https://example.com/');
      return call(await admin.token(), 'POST', `/webhooks/${id}/rotate-secret`);
    },

    notFound: () => call(admin, 'GET', `/users/${anId}`),
    methodNotAllowed: () => call(app.anonymous, 'DELETE', '/users'),
    requestTooSlow: async () => {
      const [response] = (await slow.closed(15 * second)).answers;
      return { status: response?.status ?? 0, body: response?.body, header: (name) => response?.headers[name] };
    },

    idempotencyKeyInUse: async () => {
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const holding = app.services.db.transaction(() => held);
      const options = { body: { name: 'Twice' }, headers: { 'idempotency-key': 'twice' } };
      const refused = await Promise.race([
        call(member, 'POST', '/teams', options),
        call(member, 'POST', '/teams', options),
      ]);
      release();
      await holding;
      return refused;
    },
    idempotencyKeyReused: async () => {
      const headers = { 'idempotency-key': 'reused' };
      await member.post('/teams', { name: 'Once' }, { headers });
      return call(member, 'POST', '/teams', { body: { name: 'Another' }, headers });
    },
    idempotencyUnsupported: () =>
      asking(responding(200), 'POST', '/teams', { body: { name: 'x' }, headers: { 'idempotency-key': 'x' } }),
    connectorConflict: () => asking(responding(409), 'PUT', `/teams/${anId}`, { body: {} }),
    organizationExists: () => call(app.anonymous, 'POST', '/org', { body: organization }),
    teamOwnerNeeded: async () => {
      const { id } = (await member.post('/teams', { name: 'Research' })).body.team;
      return call(member, 'PUT', `/teams/${id}`, { body: { members: [] } });
    },
    settingNeeded: async () => {
      await admin.put('/settings/smtp', { host: 'smtp.example.com', from: 'no-reply@example.com' });
      expect((await setSteps('otp')).status).toBe(200);
      const refused = await call(admin, 'DELETE', '/settings/smtp');
      await setSteps('password');
      expect((await admin.delete('/settings/smtp')).status).toBe(200);
      return refused;
    },
    lastSignOn: async () => {
      await admin.put('/settings/oidc', provider);
      const store = secondConnection(app);
      const columns = 'issuer, subject, user_id, created_at, signed_in_at';
      const row = [provider.issuer, 'ada', admin.userId, app.clock.now(), app.clock.now()];
      store.prepare(`INSERT INTO external_identities (${columns}) VALUES (?, ?, ?, ?, ?)`).run(...row);
      store.close();
      expect((await setSteps('oidc')).status).toBe(200);
      const refused = await call(admin, 'DELETE', `/users/${admin.userId}/identities`);
      await setSteps('password');
      expect((await admin.delete('/settings/oidc')).status).toBe(200);
      return refused;
    },
    groupNameTaken: () => call(admin, 'POST', '/userGroups', { body: { name: 'ADMIN', type: 'custom' } }),
    lastAdministrator: async () => {
      const body = { userIds: [admin.userId], groupIds: [await systemGroup('admin')] };
      return call(admin, 'POST', '/userGroups/remove-users', { body });
    },
    emailHeldUnverified: async () => {
      const [owner, holder] = [
        await mailing.member(inviter, 'own@x.example'),
        await mailing.member(inviter, 'y@x.example'),
      ];
      await holder.patch(`/users/${holder.userId}/email`, { email: 'real@x.example' });
      return call(owner, 'PATCH', `/users/${owner.userId}/email`, { body: { email: 'real@x.example' } });
    },
    emailTaken: () => call(admin, 'POST', '/users', newUser('grace@example.com')),
    administratorNotDeletable: () => call(admin, 'DELETE', `/users/${admin.userId}`),
    everybodyActive: () => invite('ada@example.com'),
    userActive: () => call(admin, 'POST', `/users/${member.userId}/restore`),
    tooManyWebhooks: async () => {
      const url = 'https://example.com/';
      const { webhooks } = (await admin.get('/webhooks')).body;
      const room = 50 - webhooks.length;
      const made = await Promise.all(Array.from({ length: room }, () => registerWebhook(admin, url)));
      const refused = await call(admin, 'POST', '/webhooks', { body: { url } });
      // Nothing is to be sent to any of them.
      await Promise.all([...webhooks, ...made].map(({ id }) => admin.delete(`/webhooks/${id}`)));
      return refused;
    },
    emailOfDeletedUser: async () => {
      const gone = await app.member(admin, 'gone@example.com');
      await app.deleteUser(gone.userId);
      return call(admin, 'POST', '/users', newUser('gone@example.com'));
    },

    eventsGone: async () => {
      const { db } = mailing.services;
      await db.transaction((tx) => tx.deleteFrom('outbox').where('sequence', '<=', 1).execute());
      return call(inviter, 'GET', '/events?after=0');
    },
    linkGone: async () => {
      const { _id } = (await inviter.post('/users', newUser('linked@example.com').body)).body;
      const { link } = (await inviter.post(`/users/${_id}/invite-link`)).body;
      await inviter.post(`/users/${_id}/invite-link`);
      const holder = mailing.with(link.split('#token=')[1]);
      return call(holder, 'POST', '/userAccount/password/reset/token', { body: { password } });
    },

    bodyTooLarge: () => call(app.anonymous, 'POST', '/users', { raw: 'x'.repeat(1_048_577) }),
    fileTooLarge: () => upload(Buffer.alloc(1_048_577, onePixel())),
    bodyNotForm: () => call(member, 'PUT', '/users/dp', { body: { file: 'x' } }),
    bodyNotJson: () => call(admin, 'POST', '/users', { raw: 'x', headers: { 'content-type': 'text/plain' } }),
    bodyEncoded: () => call(admin, 'POST', '/users', { raw: 'x', headers: { 'content-encoding': 'gzip' } }),
    pictureTypeUnsupported: () => upload(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')),

    tooManyRequests: async () => {
      const stranger = limited.with('unknown');
      for (let count = 0; count < 300; count += 1) expect((await stranger.get('/users')).status).toBe(401);
      return call(stranger, 'GET', '/users');
    },
    signInBlocked: async () => {
      for (let count = 0; count < 5; count += 1) expect((await signIn(limited, 'Wrong-Horse-7')).status).toBe(401);
      const { status, body, headers } = await signIn(limited, password);
      return { status, body, header: (name) => headers.get(name) ?? undefined };
    },
    headersTooLarge: () => raw(requestText(open, ['Host: x', `X-A: ${'a'.repeat(20_000)}`])),

    internal: async () => {
      const store = secondConnection(app);
      store.exec('ALTER TABLE outbox RENAME TO elsewhere');
      const refused = await call(admin, 'POST', '/users', newUser('fault@example.com'));
      store.exec('ALTER TABLE elsewhere RENAME TO outbox');
      store.close();
      return refused;
    },
    storeUnavailable: async () => {
      const store = secondConnection(app);
      store.exec('BEGIN IMMEDIATE');
      const startedMs = performance.now();
      const refused = await call(admin, 'POST', '/users', newUser('busy@example.com'));
      // What is written behind requests may have its own wait before.
      expect(performance.now() - startedMs).toBeLessThan(2 * busyMs + 3 * second);
      store.exec('ROLLBACK');
      store.close();
      return refused;
    },
    relayStopped: async () => {
      const isAlive = vi.spyOn(app.services.relays, 'isAlive').mockReturnValue(false);
      const refused = await call(app.anonymous, 'GET', '//health/ready');
      isAlive.mockRestore();
      return refused;
    },
    inviteMailFailed: () => unmailed(() => invite('unreached@example.com')),
    testMailFailed: () => unmailed(() => call(inviter, 'POST', '/settings/smtp/test')),
    oidcFailed: async () => {
      expect((await asker.put('/settings/oidc', { ...provider, issuer: backend.url })).status).toBe(200);
      return asking(responding(500), 'POST', '/settings/oidc/test');
    },
    connectorBadAnswer: () => asking(responding(401), 'GET', `/teams/${anId}`),
    connectorUnavailable: () => asking((socket) => void socket.destroy(), 'DELETE', `/teams/${anId}`),
    connectorTimeout: () => hanging,
    overloaded: async () => {
      const token = await beginSignIn(app, 'ada@example.com');
      const headers = { 'x-session-token': token };
      const body = { method: 'password', credentials: { password: 'Wrong-Horse-7' } };
      const many = Array.from({ length: 80 }, () =>
        call(app.anonymous, 'POST', '/userAccount/authenticate', { body, headers }),
      );
      const responses = await Promise.all(many);
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([401, 503]));
      return responses.find(({ status }) => status === 503) ?? { status: 0, body: null, header: () => undefined };
    },
  };

  /** The public text with every parameter standing for something. */
  function form(text: string): RegExp {
    const literal = text.split(/\{\w+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`^${literal.join('.+')}$`);
  }

  it('every one has a case', () => {
    expect(Object.keys(cases).sort()).toEqual(Object.keys(apiErrors).sort());
  });

  const last: ApiErrorName = 'requestTooSlow';
  const names = (Object.keys(apiErrors) as ApiErrorName[]).filter((name) => name !== last);

  // Their bodies are spelled out; see below.
  const spelledOut: ApiErrorName = 'everybodyActive';
  const ofOAuth = new Map<ApiErrorName, string>([
    ['clientNamedTwice', 'invalid_request'],
    ['grantUnsupported', 'unsupported_grant_type'],
    ['serviceScopeInvalid', 'invalid_scope'],
    ['clientInvalid', 'invalid_client'],
    ['clientNeedsSecret', 'invalid_client'],
    ['introspectionNotAllowed', 'unauthorized_client'],
  ]);

  const ofMcp: ApiErrorName = 'originForeign';
  const others = names.filter((name) => name !== spelledOut && name !== ofMcp && !ofOAuth.has(name));

  it.each([...others, last])('%s', async (name) => {
    const { status, code, text } = apiErrors[name];
    const refused = await cases[name]();
    expect([refused.status, refused.body.error.code]).toEqual([status, code]);
    expect(refused.body.message).toMatch(form(text));
    expect(refused.body.error.message).toBe(refused.body.message);
    expect(refused.body.error.requestId).toBe(refused.header('x-request-id'));
    expect(refused.header('cache-control')).toBe('no-store');
    expect('details' in refused.body.error).toBe(code === 'VALIDATION_ERROR');
    const { failed, oldest, ...common } = refused.body;
    expect(failed).toEqual(name === 'inviteMailFailed' ? ['unreached@example.com'] : undefined);
    expect(oldest).toBe(name === 'eventsGone' ? 2 : undefined);
    expect(Object.keys(common).sort()).toEqual(['error', 'message']);
    expect(refused.header('www-authenticate') !== undefined).toBe(status === 401 || code === 'INSUFFICIENT_SCOPE');
    expect(refused.header('allow') !== undefined).toBe(status === 405);
    const wait = Number(refused.header('retry-after') ?? Number.NaN);
    expect(wait > 0).toBe(status === 429 || status === 503);
    expect(refused.header('ratelimit-remaining')).toBe(status === 429 ? '0' : undefined);
  });

  it(`${spelledOut}: in the one spelling errorMessage (ERR-4)`, async () => {
    const { status, text } = apiErrors[spelledOut];
    const refused = await cases[spelledOut]();
    expect([refused.status, refused.body]).toEqual([status, { errorMessage: text }]);
    expect(refused.header('x-request-id')).toBeTypeOf('string');
    expect(refused.header('cache-control')).toBe('no-store');
    expect((Object.keys(apiErrors) as ApiErrorName[]).filter(hasErrorMessage)).toEqual([spelledOut]);
  });

  it(`${ofMcp}: in the form of JSON-RPC (ERR-5)`, async () => {
    const { status, text, code } = apiErrors[ofMcp];
    const refused = await cases[ofMcp]();
    const data = { code, requestId: refused.header('x-request-id') };
    const body = { jsonrpc: '2.0', id: null, error: { code: -32_000, message: text, data } };
    expect([refused.status, refused.body]).toEqual([status, body]);
    expect(refused.header('cache-control')).toBe('no-store');
  });

  it.each([...ofOAuth])('%s: in the words of RFC 6749, as %s (ERR-5)', async (name, error) => {
    const { status, text } = apiErrors[name];
    const refused = await cases[name]();
    expect([refused.status, refused.body]).toEqual([status, { error, error_description: expect.any(String) }]);
    expect(refused.body.error_description).toMatch(form(text));
    expect(refused.header('x-request-id')).toBeTypeOf('string');
    expect(refused.header('cache-control')).toBe('no-store');
    expect(refused.header('www-authenticate')).toBe(status === 401 ? 'Basic realm="latchkey"' : undefined);
  });

  it('OAuth endpoints refuse in those words whatever the reason (ERR-5, SERVICE-11)', async () => {
    const raw = { raw: '{', headers: { 'content-type': 'application/json', ...basic(connector) } };
    const wrongType = { raw: '{}', headers: { 'content-type': 'text/plain', ...basic(connector) } };
    const tooLarge = { raw: `{"token":"${'x'.repeat(1_048_577)}"}`, headers: raw.headers };
    const responses = await Promise.all(
      [raw, wrongType, tooLarge].map((options) => call(app.anonymous, 'POST', '/oauth2/revoke', options)),
    );
    expect(responses.map(({ status, body }) => [status, body.error])).toEqual([
      [400, 'invalid_request'],
      [415, 'invalid_request'],
      [413, 'invalid_request'],
    ]);
    for (const { body } of responses) expect(Object.keys(body)).toEqual(['error', 'error_description']);
  });

  it('faults were logged, each once and with its request id, and told neutrally (ERR-6, ERR-25)', async () => {
    app.logLines.length = 0;
    const before = await app.events();
    const { body } = await cases.internal();
    const faults = app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 50);
    expect(faults.map(({ requestId }) => requestId)).toEqual([body.error.requestId]);
    expect(faults[0].err.message).toMatch(/no such table|relation "outbox" does not exist/);
    expect(JSON.stringify(body)).not.toMatch(/table|outbox|sqlite|insert|select|\.ts|\.js|node_modules|\/| at /i);
    // Nothing of the failed request stays, and the next one is as good as ever.
    expect(await app.events()).toEqual(before);
    expect((await admin.post('/users', newUser('fault@example.com').body)).status).toBe(201);
    expect((await admin.post('/users', newUser('busy@example.com').body)).status).toBe(201);
  });
});
