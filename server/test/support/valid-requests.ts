import { issueLinks } from '../../src/features/links/public.ts';
import { addressOf } from '../../src/http/endpoint.ts';
import { isUpload } from '../../src/http/media.ts';
import { routes } from '../../src/routes.gen.ts';
import { registerService } from './service-clients.ts';
import { beginSignIn } from './sign-in.ts';
import { stepsOf } from './sign-in-desk.ts';
import { addRelay, unserved } from './stored-relays.ts';
import { Client, type Json, password, type TestApp, type TestResponse } from './test-app.ts';
import { registerWebhook } from './webhooks.ts';

/** Clients and data that requests are made with. */
export interface World {
  /** Has a mail server. */
  readonly app: TestApp;
  readonly admin: Client;
  readonly member: Client;
  readonly memberEmail: string;
}

/** A request that succeeds. */
export interface ValidRequest {
  readonly caller: Client;
  /** Below /api/v1. */
  readonly path: string;
  readonly body: Json;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whose password it sets, to the one in the body. */
  readonly setsPasswordOf?: string;
  /** It verifies the address of the client's user. */
  readonly verifiesAddress?: true;
}

type Make = (world: World) => ValidRequest | Promise<ValidRequest>;

let count = 0;
const fresh = () => {
  count += 1;
  return `fresh-${count}@example.com`;
};

/** Changes something of the member. */
function ofMember(field: string, body: Json): readonly [string, Make] {
  const route = `PATCH /users/:id/${field}`;
  return [route, ({ admin, member }) => ({ caller: admin, path: `/users/${member.userId}/${field}`, body })];
}

async function newGroup(admin: Client): Promise<string> {
  return (await admin.post('/userGroups', { name: fresh(), type: 'custom' })).body._id;
}

/** In place of all others, so that there are never too many. */
async function newWebhook(admin: Client): Promise<string> {
  for (const { id } of (await admin.get('/webhooks')).body.webhooks) await admin.delete(`/webhooks/${id}`);
  return (await registerWebhook(admin, 'https://example.com/', { events: ['orgDeleted'] })).id;
}

function changeOfMembers(change: 'add-users' | 'remove-users'): readonly [string, Make] {
  const make: Make = async ({ admin, member }) => {
    const body = { userIds: [member.userId], groupIds: [await newGroup(admin)] };
    return { caller: admin, path: `/userGroups/${change}`, body };
  };
  return [`POST /userGroups/${change}`, make];
}

/** A new password in place of the password of tests. */
export const newPassword = 'Brand-New-Horse-8';

/** Invites a new user; returns the user and the secret of a link. */
async function invited({ app, admin }: World): Promise<{ readonly holder: Client; readonly email: string }> {
  const email = fresh();
  const { _id } = (await admin.post('/users', { fullName: 'Good', email })).body;
  const { link } = (await admin.post(`/users/${_id}/invite-link`)).body;
  return { holder: new Client(app, link.split('#token=')[1], _id), email };
}

/** Returns a request of a service that names itself in the body. */
function ofService(path: string, more: Readonly<Record<string, string>>): readonly [string, Make] {
  const make: Make = async ({ app, admin }) => {
    const { clientId, clientSecret } = await registerService(admin);
    return { caller: app.anonymous, path, body: { client_id: clientId, client_secret: clientSecret, ...more } };
  };
  return [`POST ${path}`, make];
}

const requests = new Map<string, Make>([
  ofService('/oauth2/token', { grant_type: 'client_credentials', scope: 'USER_LOOKUP' }),
  ofService('/oauth2/introspect', { token: 'unknown' }),
  ofService('/oauth2/revoke', { token: 'unknown' }),
  [
    'POST /service-clients',
    ({ admin }) => ({ caller: admin, path: '/service-clients', body: { name: 'good', scopes: ['USER_LOOKUP'] } }),
  ],
  [
    'POST /service-clients/:clientId/rotate',
    async ({ admin }) => {
      const { clientId } = await registerService(admin);
      return { caller: admin, path: `/service-clients/${clientId}/rotate`, body: { graceSeconds: 60 } };
    },
  ],
  [
    'POST /events/dead-letters/requeue',
    ({ admin }) => ({ caller: admin, path: '/events/dead-letters/requeue', body: { ids: ['f'.repeat(24)] } }),
  ],
  [
    'POST /events/relays/replay',
    async ({ app, admin }) => {
      await addRelay(app);
      return { caller: admin, path: '/events/relays/replay', body: { relay: unserved, after: 0 } };
    },
  ],
  ['POST /webhooks', ({ admin }) => ({ caller: admin, path: '/webhooks', body: { url: 'https://example.com/' } })],
  [
    'PATCH /webhooks/:webhookId',
    async ({ admin }) => ({ caller: admin, path: `/webhooks/${await newWebhook(admin)}`, body: { enabled: false } }),
  ],
  [
    'POST /webhooks/:webhookId/replay',
    async ({ admin }) => ({ caller: admin, path: `/webhooks/${await newWebhook(admin)}/replay`, body: { after: 0 } }),
  ],
  [
    'POST /orgAuthConfig/updateAuthMethod',
    ({ admin }) => ({
      caller: admin,
      path: '/orgAuthConfig/updateAuthMethod',
      body: { authMethod: stepsOf(['password']) },
    }),
  ],
  [
    'POST /orgAuthConfig',
    ({ admin }) => ({ caller: admin, path: '/orgAuthConfig', body: { authMethod: stepsOf(['password']) } }),
  ],
  ['PATCH /org', ({ admin }) => ({ caller: admin, path: '/org', body: { shortName: 'Short' } })],
  ['PUT /org', ({ admin }) => ({ caller: admin, path: '/org', body: { registeredName: 'Registered' } })],
  [
    'PUT /org/onboarding-status',
    ({ admin }) => ({ caller: admin, path: '/org/onboarding-status', body: { status: 'skipped' } }),
  ],
  [
    'DELETE /users/:id/personal-access-tokens',
    ({ admin, member }) => ({
      caller: admin,
      path: `/users/${member.userId}/personal-access-tokens`,
      body: { reason: 'good' },
    }),
  ],
  [
    'POST /personal-access-tokens',
    ({ member }) => ({ caller: member, path: '/personal-access-tokens', body: { name: 'good' } }),
  ],
  [
    'DELETE /personal-access-tokens/:tokenId',
    async ({ member }) => {
      const { tokenId } = await member.token();
      return { caller: member, path: `/personal-access-tokens/${tokenId}`, body: { reason: 'good' } };
    },
  ],
  [
    'DELETE /personal-access-tokens/admin/:tokenId',
    async ({ admin, member }) => {
      const { tokenId } = await member.token();
      return { caller: admin, path: `/personal-access-tokens/admin/${tokenId}`, body: { reason: 'good' } };
    },
  ],
  [
    'POST /userAccount/authenticate',
    async ({ app, memberEmail: email }) => ({
      caller: app.anonymous,
      path: '/userAccount/authenticate',
      body: { method: 'password', credentials: { password }, email },
      headers: { 'x-session-token': await beginSignIn(app, email) },
    }),
  ],
  [
    'POST /userAccount/email/confirm',
    ({ admin, member }) => ({ caller: admin, path: '/userAccount/email/confirm', body: { userId: member.userId } }),
  ],
  [
    'POST /userAccount/email/confirm/token',
    async ({ app, admin }) => {
      const { userId } = await app.member(admin, fresh());
      await (await admin.token()).patch(`/users/${userId}/email`, { email: fresh() });
      const { orgId } = (await admin.get(`/users/${userId}`)).body;
      const issuing = { purpose: 'confirmation', setsPassword: true, createdBy: null, delivery: 'sending' } as const;
      const [link] = await app.services.db.transaction((tx) =>
        issueLinks(tx, app.services, { ...issuing, inputs: [{ orgId, userId, needsPassword: true }] }),
      );
      const caller = new Client(app, link?.address.expose().split('#token=')[1] ?? '', userId);
      return {
        caller,
        path: '/userAccount/email/confirm/token',
        body: { currentPassword: password },
        verifiesAddress: true,
      };
    },
  ],
  [
    'POST /userAccount/initAuth',
    ({ app, memberEmail: email }) => ({ caller: app.anonymous, path: '/userAccount/initAuth', body: { email } }),
  ],
  [
    'POST /userAccount/login/otp/generate',
    ({ app, memberEmail: email }) => ({
      caller: app.anonymous,
      path: '/userAccount/login/otp/generate',
      body: { email },
    }),
  ],
  [
    'POST /userAccount/logout/manual',
    async ({ app, memberEmail }) => {
      return { caller: await app.signIn(memberEmail), path: '/userAccount/logout/manual', body: { all: false } };
    },
  ],
  [
    'POST /userAccount/password/forgot',
    ({ app, memberEmail: email }) => ({ caller: app.anonymous, path: '/userAccount/password/forgot', body: { email } }),
  ],
  [
    'POST /userAccount/password/reset',
    async ({ app, admin }) => {
      const email = fresh();
      const body = { currentPassword: password, newPassword };
      const caller = await app.member(admin, email);
      return { caller, path: '/userAccount/password/reset', body, setsPasswordOf: email };
    },
  ],
  [
    'POST /userAccount/password/reset/token',
    async (world) => {
      const { holder: caller, email } = await invited(world);
      const body = { password: newPassword };
      return { caller, path: '/userAccount/password/reset/token', body, setsPasswordOf: email };
    },
  ],
  [
    'POST /configurationManager/smtpConfig',
    ({ admin }) => ({
      caller: admin,
      path: '/configurationManager/smtpConfig',
      body: { host: 'smtp.example.com', username: 'mailer', password: 'good', fromEmail: 'no-reply@example.com' },
    }),
  ],
  [
    'PUT /settings/smtp',
    ({ admin }) => ({
      caller: admin,
      path: '/settings/smtp',
      body: { host: 'smtp.example.com', username: 'mailer', password: 'good', from: 'no-reply@example.com' },
    }),
  ],
  [
    'PUT /settings/oidc',
    ({ admin }) => ({
      caller: admin,
      path: '/settings/oidc',
      body: { issuer: 'https://id.example.com', clientId: 'latchkey', clientSecret: 'good', groupIds: [] },
    }),
  ],
  ['POST /users', ({ admin }) => ({ caller: admin, path: '/users', body: { fullName: 'Good', email: fresh() } })],
  [
    'POST /users/bulk/invite',
    async ({ admin }) => {
      const body = { emails: [fresh()], groupIds: [await newGroup(admin)] };
      return { caller: admin, path: '/users/bulk/invite', body };
    },
  ],
  [
    'PUT /users/:id',
    ({ admin, member, memberEmail: email }) => ({ caller: admin, path: `/users/${member.userId}`, body: { email } }),
  ],
  ofMember('fullname', { fullName: 'Good' }),
  ofMember('firstName', { firstName: 'Good' }),
  ofMember('lastName', { lastName: 'Good' }),
  ofMember('designation', { designation: 'Good' }),
  [
    'PATCH /users/:id/email',
    ({ admin, member, memberEmail: email }) => ({
      caller: admin,
      path: `/users/${member.userId}/email`,
      body: { email },
    }),
  ],
  [
    'POST /users/by-ids',
    ({ member }) => ({ caller: member, path: '/users/by-ids', body: { userIds: [member.userId] } }),
  ],
  [
    'POST /userGroups',
    ({ admin }) => ({ caller: admin, path: '/userGroups', body: { name: fresh(), type: 'custom' } }),
  ],
  [
    'PUT /userGroups/:groupId',
    async ({ admin }) => ({ caller: admin, path: `/userGroups/${await newGroup(admin)}`, body: { name: fresh() } }),
  ],
  changeOfMembers('add-users'),
  changeOfMembers('remove-users'),
  ['POST /teams', ({ member }) => ({ caller: member, path: '/teams', body: { name: 'Good' } })],
  [
    'PUT /teams/:id',
    async ({ member }) => {
      const { id } = (await member.post('/teams', { name: 'Good' })).body.team;
      return { caller: member, path: `/teams/${id}`, body: { description: 'Good' } };
    },
  ],
]);

const needingAnEmptySystem = 'POST /org';

/**
 * Every route that takes a JSON body, with what makes a good request to it. POST /org is not among them: it succeeds
 * only once. Nor is the endpoint of agents: what it takes are messages of JSON-RPC. Throws for a route that has none here.
 */
export const jsonRoutes: readonly (readonly [string, Make])[] = routes
  .filter(({ method, body, isMcp }) => method !== 'GET' && body !== undefined && !isUpload(body) && !isMcp)
  .map((route) => `${route.method} ${addressOf(route).replace('/api/v1', '')}`)
  .filter((name) => name !== needingAnEmptySystem)
  .map((name) => {
    const make = requests.get(name);
    if (!make)
      throw new Error(`${name} takes a JSON body, and server/test/support/valid-requests.ts has no good one for it`);
    return [name, make];
  });

/** A good body for a route; `undefined` where it takes none. */
export async function validBody(name: string, world: World): Promise<Json> {
  return (await requests.get(name)?.(world))?.body;
}

/** Sends a good request with more in its body, in front of or behind what is good. */
export function sendWith(
  name: string,
  { caller, path, body, headers }: ValidRequest,
  more: string,
): Promise<TestResponse> {
  const members = JSON.stringify(body).slice(1, -1);
  const json = { 'content-type': 'application/json', ...headers };
  return caller.call(name.split(' ')[0] ?? '', path, { raw: `{${more},${members}}`, headers: json });
}
