import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient, Json } from '../harness/api-client.ts';
import type { Tell } from '../harness/command-line.ts';
import { temporaryFolder } from '../harness/processes.ts';
import { startServer } from './latchkey.ts';
import { type ListPlace, type ListRoute, listRoutes } from './list-routes.ts';
import type { Measuring } from './rows.ts';
import { administrator, seededStore } from './seeded-store.ts';
import { type Caller, timedRequest, type Wanted } from './timed-request.ts';

const watcher = new URL('./watch-statements.mjs', import.meta.url).href;
const scopes = [
  'user:read',
  'user:invite',
  'token:read',
  'token:write',
  'token:admin',
  'usergroup:read',
  'usergroup:write',
  'team:read',
  'team:write',
  'org:admin',
];
/** A server writes the first use of a token about a second later, and then not again for a minute. */
const writtenBehindMs = 2500;
const calls = 2;

interface Store {
  readonly users: number;
  readonly tokens: number;
  readonly ownTokens: number;
  /** How many rows a page asks for, so that answers differ as much as the stores. */
  readonly rows: number;
}

/** A client whose server notes the statements that it sends in the file `log`. */
interface Watched extends Caller {
  readonly client: ApiClient;
  readonly log: string;
}

/** The statements of one request, and how many rows it answered. */
interface Counted {
  readonly statements: readonly string[];
  readonly rows: number;
}

/** What P14 counted. */
export interface Statements {
  readonly routes: readonly { readonly route: string; readonly few: Counted; readonly many: Counted }[];
  /** The statements of one `GET /users` of 100,000 users, verification included. */
  readonly wholeList: readonly string[];
  /** Those of the very first one, for which the server also opens a connection. */
  readonly firstWholeList: readonly string[];
}

const stores = {
  few: { users: 100, tokens: 10, ownTokens: 1, rows: 1 },
  many: { users: 100_000, tokens: 1_000, ownTokens: 100, rows: 100 },
};

/** What the server gives SQLite while `request` is answered, and the answer. */
async function watched(server: Watched, request: Wanted): Promise<{ statements: readonly string[]; body: Json }> {
  const read = () => (existsSync(server.log) ? readFileSync(server.log, 'utf8').split('\n').slice(0, -1) : []);
  const before = read().length;
  const { body } = await timedRequest(server, request);
  return {
    statements: read()
      .slice(before)
      .map((line) => JSON.parse(line)),
    body: JSON.parse(body.toString()),
  };
}

/** The fewest statements of some calls: what the server does in between can only add to one of them. */
async function count(server: Watched, route: ListRoute, place: ListPlace): Promise<Counted> {
  const request = route.request(place);
  let fewest: Counted | null = null;
  for (let call = 0; call < calls; call++) {
    const { statements, body } = await watched(server, request);
    if (fewest === null || statements.length < fewest.statements.length) {
      fewest = { statements, rows: route.list(body).length };
    }
  }
  if (fewest === null || fewest.statements.length === 0)
    throw new Error(`not one statement was seen in ${route.route}`);
  return fewest;
}

const post = async (caller: Caller, path: string, json?: unknown): Promise<Json> =>
  JSON.parse((await timedRequest(caller, { method: 'POST', path, json })).body.toString() || '{}');

/** Makes as many groups and teams as the store is to have rows; answers a group and a team that have members. */
async function makeGroups(caller: Watched, { rows }: Store, userIds: readonly string[]) {
  const groupIds: string[] = [];
  for (let count = 0; count < rows; count++) {
    groupIds.push((await post(caller, '/userGroups', { name: `Counted ${count}`, type: 'custom' }))._id);
    await post(caller, '/teams', { name: `Counted ${count}` });
  }
  const some = userIds.slice(0, rows);
  await post(caller, '/userGroups/add-users', { userIds: some, groupIds });
  const members = some.slice(1).map((userId) => ({ userId, role: 'READER' }));
  const { team } = await post(caller, '/teams', { name: 'All', members });
  return { groupId: groupIds[0] ?? '', teamId: String(team.id) };
}

/** Invites as many people as the store is to have rows, each by a link to copy, which takes a session. */
async function makeInvitations(caller: Watched, { rows }: Store): Promise<void> {
  const { accessToken } = await caller.client.signIn(administrator);
  const signedIn = { ...caller, headers: { authorization: `Bearer ${accessToken}` } };
  for (let count = 0; count < rows; count++) {
    const json = { fullName: `Invited ${count}`, email: `invited-${count}@example.com` };
    const { _id } = await post(caller, '/users', json);
    await post(signedIn, `/users/${_id}/invite-link`);
  }
}

/** Registers as many service clients, and signs in as often, as the store is to have rows; answers the last session. */
async function makeClientsAndSessions(caller: Watched, { rows }: Store): Promise<string> {
  let session = '';
  for (let count = 0; count < rows; count++) {
    await post(caller, '/service-clients', { name: `Counted ${count}`, scopes: ['USER_LOOKUP'] });
    session = (await caller.client.signIn(administrator)).accessToken;
  }
  return session;
}

/** Sends as many test messages to a webhook without a receiver as the store is to have rows; returns the id of the webhook. */
async function makeAttempts(caller: Watched, { rows }: Store): Promise<string> {
  const { id } = await post(caller, '/webhooks', { url: 'http://127.0.0.1:9/', events: ['orgDeleted'] });
  for (let count = 0; count < rows; count++) {
    await post(caller, `/webhooks/${id}/test`);
  }
  return id;
}

async function countIn(store: Store, tell: Tell) {
  const log = join(temporaryFolder(), 'statements');
  const dataDir = await seededStore(store, tell);
  tell(`P14: counting statements with ${store.users} users`);
  const { client, program, api } = await startServer({
    dataDir,
    nodeOptions: ['--import', watcher],
    env: { STATEMENTS_FILE: log, WEBHOOK_NETWORKS: '127.0.0.1' },
  });
  const { accessToken: own } = await client.signIn(administrator);
  let token = '';
  for (let number = 1; number <= store.ownTokens; number++)
    token = await client.issueToken(own, { name: `bench ${number}`, scopes });
  const caller = { client, api, log, headers: { authorization: `Bearer ${token}` } };
  await timedRequest(caller, { path: '/users?page=1' });
  await sleep(writtenBehindMs);
  const first = await watched(caller, { path: '/users' });
  // After a commit nothing that is kept in memory counts: the next request is verified in the store.
  await client.issueToken(own, { name: 'another', scopes });
  const wholeList = (await watched(caller, { path: '/users' })).statements;
  const userIds = first.body.map((user: Json) => String(user._id));
  const webhookId = await makeAttempts(caller, store);
  const place = { rows: store.rows, userIds, webhookId, ...(await makeGroups(caller, store, userIds)) };
  await makeInvitations(caller, store);
  const session = await makeClientsAndSessions(caller, store);
  const signedIn = { ...caller, headers: { authorization: `Bearer ${session}` } };
  await sleep(writtenBehindMs);
  const counts: Counted[] = [];
  for (const route of listRoutes) counts.push(await count(route.bySession ? signedIn : caller, route, place));
  await program.end();
  return { counts, wholeList, firstWholeList: first.statements };
}

async function countAll({ tell }: Measuring): Promise<Statements> {
  const few = await countIn(stores.few, tell);
  const many = await countIn(stores.many, tell);
  const none: Counted = { statements: [], rows: 0 };
  const compared = listRoutes.map((each, place) => ({
    route: each.route + (each.with ?? ''),
    few: few.counts[place] ?? none,
    many: many.counts[place] ?? none,
  }));
  const same = compared.find((each) => each.few.rows >= each.many.rows);
  if (same !== undefined) throw new Error(`${same.route} answered no more rows with more rows in the store`);
  const { wholeList, firstWholeList } = many;
  return { routes: compared, wholeList, firstWholeList };
}

let counted: Promise<Statements> | null = null;

/** P14 and the statements of P9, counted once in this process. */
export function countStatements(options: Measuring): Promise<Statements> {
  counted ??= countAll(options);
  return counted;
}
