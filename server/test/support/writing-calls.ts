import { type AnyEndpoint, addressOf } from '../../src/http/endpoint.ts';
import { isUpload, uploadFields } from '../../src/http/media.ts';
import { routes } from '../../src/routes.gen.ts';
import { onePixel } from './made-pictures.ts';
import { clientId, clientSecret } from './oidc-server.ts';
import { registerService } from './service-clients.ts';
import { addDeadLetter } from './stored-relays.ts';
import type { Client, Json, TestApp } from './test-app.ts';
import { validBody } from './valid-requests.ts';
import { registerWebhook } from './webhooks.ts';

/** A call that changes something for its caller, in which everything is right. */
export interface WritingCall {
  readonly endpoint: AnyEndpoint;
  /** Method and path as declared. */
  readonly route: string;
  readonly params: Readonly<Record<string, string>>;
  /** Below /api/v1. */
  readonly path: string;
  readonly body: Json;
  /** What the caller has to be: as the policy says, or an administrator because of what is asked for. */
  readonly who: 'member' | 'admin' | 'adminOrSelf' | 'self';
}

/** Who calls, and what with. */
export interface WritingWorld {
  /** Has a mail server. */
  readonly app: TestApp;
  readonly admin: Client;
  /** An administrator, too. */
  readonly caller: Client;
  readonly callerEmail: string;
  /** The issuer of a provider of single sign-on that answers. */
  readonly issuer: string;
}

const ofUsers: ReadonlySet<string> = new Set(['member', 'admin', 'adminOrSelf']);

/** The routes that a user's request may change something by. Agents are asked for their credential again by each tool. */
const routesOfUsers = routes.filter(
  ({ method, policy, isMcp }) => method !== 'GET' && ofUsers.has(policy.who) && !isMcp,
);

/** Those of them that write by something else than their caller. */
export const writingOtherwise = routesOfUsers.filter(({ policy }) => 'writesBy' in policy);

/** What takes something away goes last, the whole after its parts: then every call finds what it is about. */
function orderOf({ method, path }: AnyEndpoint): number {
  // It ends all sessions of the caller.
  if (path.endsWith('/password/reset')) return 2_000;
  if (method !== 'DELETE') return 0;
  return path === '/org' ? 3_000 : 1_000 - path.length;
}

/** The routes that a user's request writes by. */
const writingRoutes = routesOfUsers
  .filter((route) => !writingOtherwise.includes(route))
  .toSorted((one, other) => orderOf(one) - orderOf(other));

/** What stands for each parameter of a path: by route where it is not the same for all. */
async function paramsFor({ app, admin, caller, callerEmail }: WritingWorld, other: Client) {
  const { body: group } = await admin.post('/userGroups', { name: 'Group', type: 'custom' });
  const team = (await caller.post('/teams', { name: 'Team' })).body.team.id;
  const newUser = async (email: string) => (await admin.post('/users', { fullName: 'New', email })).body._id;
  const [reached, handed] = [await newUser('reached@example.com'), await newUser('handed@example.com')];
  const gone = await newUser('gone@example.com');
  await app.deleteUser(gone);
  await admin.post('/users/bulk/invite', { emails: ['unwanted@example.com'] });
  const { users } = (await admin.get('/users?search=unwanted')).body;
  const webhook = await registerWebhook(admin, 'http://127.0.0.1:9/');
  await admin.patch(`/webhooks/${webhook.id}`, { enabled: false });
  await app.signIn(callerEmail);
  const { sessions } = (await caller.get('/userAccount/sessions')).body;
  const [theirs] = (await other.get('/userAccount/sessions')).body.sessions;
  const all: Readonly<Record<string, string>> = {
    id: other.userId,
    sessionId: theirs.id,
    groupId: group._id,
    tokenId: (await caller.token()).tokenId,
    clientId: (await registerService(admin)).clientId,
    webhookId: webhook.id,
    letterId: await addDeadLetter(app, 1),
  };
  const of: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'PUT /teams/:id': { id: team },
    'DELETE /teams/:id': { id: team },
    'POST /users/:id/restore': { id: gone },
    'POST /users/:id/resend-invite': { id: reached },
    'POST /users/:id/invite-link': { id: handed },
    'DELETE /users/:id/invitation': { id: users[0]._id },
    'DELETE /userAccount/sessions/:id': { id: sessions.find(({ isCurrent }: Json) => !isCurrent).id },
    'DELETE /personal-access-tokens/admin/:tokenId': { tokenId: (await other.token()).tokenId },
  };
  return (route: string) => {
    const named = [...route.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
    return Object.fromEntries(named.map((name) => [name, of[route]?.[name] ?? all[name] ?? '']));
  };
}

/** Makes a call of every route that a user's request writes by, in an order in which all of them succeed. */
export async function writingCalls(world: WritingWorld): Promise<readonly WritingCall[]> {
  const { app, admin, caller, callerEmail, issuer } = world;
  const memberEmail = 'other@example.com';
  const member = await app.member(admin, memberEmail);
  const nameOf = (endpoint: AnyEndpoint) => `${endpoint.method} ${addressOf(endpoint).replace('/api/v1', '')}`;
  const bodies = new Map<string, Json>();
  for (const endpoint of writingRoutes) {
    const route = nameOf(endpoint);
    bodies.set(route, await validBody(route, { app, admin, member, memberEmail }));
  }
  // What good bodies were made with is sent events otherwise.
  for (const { id } of (await admin.get('/webhooks')).body.webhooks) await admin.delete(`/webhooks/${id}`);
  const oidc = { issuer, clientId, clientSecret };
  bodies.set('PUT /settings/oidc', oidc);
  await admin.put('/settings/oidc', oidc);
  const paramsOf = await paramsFor(world, member);
  for (const path of ['/org/logo', '/users/dp']) await caller.upload(path, new Uint8Array(onePixel()));
  return writingRoutes.flatMap((endpoint): WritingCall[] => {
    const route = nameOf(endpoint);
    const call = (who: string, change: Readonly<Record<string, string>>, body: Json): WritingCall => {
      const params = { ...paramsOf(route), ...change };
      const path = route.replace(/^\w+ /, '').replace(/:(\w+)/g, (_, name: string) => params[name] ?? '');
      return { endpoint, route, params, path, body, who: who as WritingCall['who'] };
    };
    const { who } = endpoint.policy;
    const body = bodies.get(route);
    if (route === 'POST /userAccount/email/confirm') return [call('self', {}, undefined), call('admin', {}, body)];
    if (who !== 'adminOrSelf') return [call(who, {}, body)];
    const own = body.email === undefined ? body : { ...body, email: callerEmail };
    return [call(who, {}, body), call('self', { id: caller.userId }, own)];
  });
}

/** The bytes of a call and what they are. */
export function sentBy({ endpoint, body }: WritingCall): { readonly type: string; readonly bytes: Buffer } {
  if (endpoint.body === undefined || !isUpload(endpoint.body)) {
    return { type: 'application/json', bytes: Buffer.from(JSON.stringify(body ?? {})) };
  }
  const head = '--edge\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\n';
  const file = uploadFields(endpoint.body) ? Buffer.from('in-a-file@example.com') : onePixel();
  const bytes = Buffer.concat([Buffer.from(head), file, Buffer.from('\r\n--edge--\r\n')]);
  return { type: 'multipart/form-data; boundary=edge', bytes };
}
