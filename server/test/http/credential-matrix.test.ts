import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hashCredential } from '../../src/base/secret.ts';
import { createRawTicket } from '../../src/features/identities/ticket.ts';
import { tokenIn } from '../support/mail-server.ts';
import { basic, formTo, issuedTo, type RegisteredService, registerService } from '../support/service-clients.ts';
import { claimsOf } from '../support/sign-in.ts';
import { SignInDesk } from '../support/sign-in-desk.ts';
import { type Client, password, type TestApp } from '../support/test-app.ts';

const email = 'ada@example.com';
const owner = { reset: 'grace@example.com', invitation: 'edsger@example.com' };
const newPassword = 'Another-Horse-8';

/** Every kind of credential that there is. */
const kinds = [
  'session',
  'personal access token',
  'personal access token without its prefix',
  'scoped token, issued',
  'scoped token, self-signed',
  'refresh token',
  'x-session-token',
  'reset link',
  'invitation link',
  'confirmation link',
  'one-time code',
  'ticket of single sign-on',
  'client secret',
  'client by Basic',
  'password',
] as const;
type Kind = (typeof kinds)[number];
type Statuses = Partial<Record<Kind, number>>;

const tokensOfPeople = { 'personal access token': 200, 'personal access token without its prefix': 200 };
const users = { session: 200, ...tokensOfPeople };
const sessionsOnly = {
  session: 200,
  'personal access token': 403,
  'personal access token without its prefix': 403,
};
const services = { 'scoped token, issued': 200, 'scoped token, self-signed': 200 };

let desk: SignInDesk;
let app: TestApp;
let admin: Client;
let service: RegisteredService;
/** The sign-in that the ticket is for. */
let ticketSignIn: string;
const values = new Map<Kind, string>();
const given = (kind: Kind) => values.get(kind) ?? '';

/** The Authorization header that shows a credential. */
function shown(kind: Kind): Readonly<Record<string, string>> {
  return { authorization: kind === 'client by Basic' ? given(kind) : `Bearer ${given(kind)}` };
}

async function makeLinks(): Promise<void> {
  await app.member(admin, owner.reset);
  await app.anonymous.post('/userAccount/password/forgot', { email: owner.reset });
  values.set('reset link', tokenIn(await desk.mail.mailTo(owner.reset)));
  const { body: invited } = await admin.post('/users', { fullName: 'Edsger Dijkstra', email: owner.invitation });
  const { body } = await admin.post(`/users/${invited._id}/invite-link`);
  values.set('invitation link', body.link.split('#token=')[1]);
  const member = await app.member(admin, 'moving@example.com');
  await member.patch(`/users/${member.userId}/email`, { email: 'moved@example.com', currentPassword: password });
  values.set('confirmation link', tokenIn(await desk.mail.mailTo('moved@example.com')));
}

async function makeTicket(): Promise<void> {
  const ticket = createRawTicket().expose();
  ticketSignIn = await desk.begin(email);
  const [hash, sign_in_id] = [hashCredential(ticket), claimsOf(ticketSignIn).jti];
  const row = { hash, sign_in_id, user_id: admin.userId, expires_at: app.clock.now() + 60_000 };
  await app.services.db.transaction((tx) => tx.insertInto('sign_in_tickets').values(row).execute());
  values.set('ticket of single sign-on', ticket);
}

beforeAll(async () => {
  const oidc = { OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_CLIENT_ID: 'latchkey', OIDC_CLIENT_SECRET: 'x' };
  desk = await SignInDesk.start(oidc);
  ({ app, admin } = desk);
  await desk.setSteps(['password', 'otp', 'oidc']);
  await makeLinks();
  await makeTicket();
  const { body: pair } = await app.signInTokens(email);
  values.set('session', pair.accessToken);
  values.set('refresh token', pair.refreshToken);
  const token = (await admin.token({ expiryDays: 'never' })).credential ?? '';
  values.set('personal access token', token);
  values.set('personal access token without its prefix', token.replace('lkpat_', ''));
  service = await registerService(admin);
  values.set('scoped token, issued', (await issuedTo(app, service)).credential);
  values.set('scoped token, self-signed', app.service(['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ']).credential ?? '');
  values.set('client secret', service.clientSecret);
  values.set('client by Basic', basic(service)['authorization'] ?? '');
  values.set('x-session-token', await desk.begin(email));
  values.set('one-time code', await desk.codeFor(email));
  values.set('password', password);
});
afterAll(() => desk.close());

const bearerAt = (method: string, path: () => string, body?: unknown) => async (kind: Kind) =>
  (await app.anonymous.call(method, path(), { headers: shown(kind), ...(body === undefined ? {} : { body }) })).status;
const proofOf = (method: string) => async (kind: Kind) =>
  (await desk.take(await desk.begin(email), [method, given(kind)])).status;
const internalUser = () => `/users/internal/${admin.userId}`;

interface EntryPoint {
  readonly name: string;
  /** Statuses for each kind that is not plainly rejected. */
  readonly open: Statuses;
  /** Status of the others: 401, unless they don't have the form that is checked there. */
  readonly others?: (value: string) => number;
  readonly knock: (kind: Kind) => Promise<number>;
}

/** Doors where nothing is used up by who gets in. */
const entryPoints: readonly EntryPoint[] = [
  { name: 'a route of members', open: users, knock: bearerAt('GET', () => '/org') },
  { name: 'a route of administrators', open: users, knock: bearerAt('PATCH', () => '/org', {}) },
  { name: 'the list of services', open: users, knock: bearerAt('GET', () => '/service-clients') },
  { name: 'the event log', open: { ...users, ...services }, knock: bearerAt('GET', () => '/events') },
  { name: 'the settings', open: users, knock: bearerAt('GET', () => '/settings/smtp') },
  { name: 'a route of sessions', open: sessionsOnly, knock: bearerAt('GET', () => '/userAccount/sessions') },
  { name: 'the steps of sign-in', open: sessionsOnly, knock: bearerAt('GET', () => '/orgAuthConfig/authMethods') },
  { name: 'a user, for services', open: services, knock: bearerAt('GET', internalUser) },
  {
    name: 'users by address, for services',
    open: services,
    knock: bearerAt('GET', () => `/users/email/exists?email=${email}`),
  },
  {
    name: 'the sign-in by password, for services',
    open: services,
    knock: bearerAt('GET', () => '/userAccount/internal/password/check'),
  },
  { name: 'the reload, for services', open: services, knock: bearerAt('POST', () => '/users/updateAppConfig') },
  {
    name: 'the header of oauth2/token',
    open: { 'client by Basic': 200 },
    knock: bearerAt('POST', () => '/oauth2/token', { grant_type: 'client_credentials' }),
  },
  {
    name: 'the header of oauth2/introspect',
    open: { 'client by Basic': 200 },
    knock: bearerAt('POST', () => '/oauth2/introspect', { token: 'x' }),
  },
  {
    name: 'the header of oauth2/revoke',
    open: { 'client by Basic': 200 },
    knock: bearerAt('POST', () => '/oauth2/revoke', { token: 'x' }),
  },
  {
    name: 'the secret of a client',
    open: { 'client secret': 200 },
    knock: async (kind) => {
      const headers = basic({ ...service, clientSecret: given(kind) });
      return (await formTo(app)('/oauth2/token', { grant_type: 'client_credentials' }, headers)).status;
    },
  },
  {
    name: 'the password of a sign-in',
    open: { password: 200 },
    // No password has more bytes.
    others: (value) => (value.length > 1_024 ? 400 : 401),
    knock: proofOf('password'),
  },
  {
    name: 'the query and a cookie',
    open: {},
    knock: async (kind) => {
      const value = encodeURIComponent(given(kind));
      const headers = { cookie: `token=${value}; session=${value}` };
      return (await app.anonymous.get(`/org?access_token=${value}&token=${value}`, { headers })).status;
    },
  },
];

/** Entry points that consume the credential. */
const usingUp: readonly EntryPoint[] = [
  {
    name: 'the refresh route',
    open: { 'refresh token': 200 },
    knock: bearerAt('POST', () => '/userAccount/refresh/token'),
  },
  {
    name: 'the header x-session-token',
    open: { 'x-session-token': 200 },
    knock: async (kind) =>
      (await desk.take(given(kind), ['password', password], kind === 'x-session-token' ? undefined : email)).status,
  },
  {
    name: 'the code of a sign-in',
    open: { 'one-time code': 200 },
    others: (value) => (value.length > 20 ? 400 : 401),
    knock: proofOf('otp'),
  },
  {
    name: 'the ticket of a sign-in',
    open: { 'ticket of single sign-on': 200 },
    others: (value) => (value.length > 200 ? 400 : 401),
    knock: async (kind) => (await desk.take(ticketSignIn, ['oidc', given(kind)])).status,
  },
  {
    name: 'the reset of a password',
    open: { 'reset link': 200, 'invitation link': 200 },
    knock: bearerAt('POST', () => '/userAccount/password/reset/token', { password: newPassword }),
  },
  {
    name: 'the confirmation of an address',
    open: { 'confirmation link': 200 },
    knock: bearerAt('POST', () => '/userAccount/email/confirm/token', {}),
  },
];

function expectedAt({ open, others = () => 401 }: EntryPoint, kind: Kind): number {
  return open[kind] ?? others(given(kind));
}

const rules = '(T3, AUTH-28, AUTH-32, AUTH-33, SERVICE-1, SERVICE-2)';

describe('every kind of credential at every place where one goes', () => {
  for (const entryPoint of entryPoints) {
    it(`${entryPoint.name}: only its own kinds get in ${rules}`, async () => {
      const expected = kinds.map((kind) => `${kind}: ${expectedAt(entryPoint, kind)}`);
      const met = await Promise.all(kinds.map(async (kind) => `${kind}: ${await entryPoint.knock(kind)}`));
      expect(met).toEqual(expected);
    });
  }

  it('what is asked about at oauth2/introspect: active is what a bearer of some route is (SERVICE-19)', async () => {
    const active = kinds.map(async (kind) => {
      const response = await formTo(app)('/oauth2/introspect', { token: given(kind) }, basic(service));
      return response.body.active ? kind : null;
    });
    const bearers = [...Object.keys(users), ...Object.keys(services)];
    expect((await Promise.all(active)).filter((kind) => kind !== null)).toEqual(bearers);
  });

  it('what is revoked at oauth2/revoke: nothing of another kind ends there (SERVICE-16)', async () => {
    for (const kind of kinds.filter((one) => one !== 'scoped token, issued')) {
      const { status } = await formTo(app)('/oauth2/revoke', { token: given(kind) }, basic(service));
      expect([kind, status]).toEqual([kind, 200]);
    }
  });

  for (const entryPoint of usingUp) {
    it(`${entryPoint.name}: no other kind gets in ${rules}`, async () => {
      const others = kinds.filter((kind) => entryPoint.open[kind] === undefined);
      const met = await Promise.all(others.map(async (kind) => `${kind}: ${await entryPoint.knock(kind)}`));
      expect(met).toEqual(others.map((kind) => `${kind}: ${expectedAt(entryPoint, kind)}`));
    });
  }

  it('anyone who is not of the kind is told the same as who shows nothing that exists (AUTH-20, AUTH-28)', async () => {
    for (const kind of ['refresh token', 'x-session-token', 'reset link', 'scoped token, issued'] as const) {
      const { body } = await app.anonymous.get('/org', { headers: shown(kind) });
      expect([kind, body.error.code]).toEqual([kind, 'TOKEN_INVALID']);
    }
    for (const kind of ['session', 'personal access token', 'reset link', 'one-time code'] as const) {
      const { body } = await app.anonymous.get(internalUser(), { headers: shown(kind) });
      expect([kind, body.error.code]).toEqual([kind, 'TOKEN_INVALID']);
    }
  });
});

describe('after all that, each is still good at its own place', () => {
  for (const entryPoint of [...entryPoints, ...usingUp]) {
    for (const kind of kinds.filter((one) => entryPoint.open[one] === 200)) {
      it(`200: ${kind} at ${entryPoint.name}`, async () => expect(await entryPoint.knock(kind)).toBe(200));
    }
  }

  it.each(['refresh token', 'one-time code', 'ticket of single sign-on', 'reset link', 'invitation link'] as const)(
    'and is no good elsewhere once it is used up: %s (AUTH-28)',
    async (kind) => {
      for (const path of ['/org', internalUser(), '/userAccount/sessions']) {
        expect((await app.anonymous.get(path, { headers: shown(kind) })).status).toBe(401);
      }
    },
  );
});
