import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { issueTokenFor, signIn, startServer } from './latchkey.ts';
import { listRoutes } from './list-routes.ts';
import { end, temporaryFolder } from './pinned.ts';
import { administrator, seededStore } from './seeded-store.ts';
import { timedRequest } from './timed-request.ts';

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

/** Two stores: `rows` is how many rows a page asks for, so that answers differ as much as the stores. */
const stores = {
  few: { users: 100, tokens: 10, ownTokens: 1, rows: 1 },
  many: { users: 100_000, tokens: 1_000, ownTokens: 100, rows: 100 },
};

/** What the server gives SQLite while `request` is answered, and the answer. */
async function watched(server, request) {
  const read = () => (existsSync(server.log) ? readFileSync(server.log, 'utf8').split('\n').slice(0, -1) : []);
  const before = read().length;
  const { body } = await timedRequest(server, request);
  return { statements: read().slice(before).map(JSON.parse), body: JSON.parse(body) };
}

/** The fewest statements of some calls: what the server does in between can only add to one of them. */
async function count(server, route, place) {
  const request = route.request(place);
  let fewest = null;
  for (let call = 0; call < calls; call++) {
    const { statements, body } = await watched(server, request);
    if (fewest === null || statements.length < fewest.statements.length) {
      fewest = { statements, rows: route.list(body).length };
    }
  }
  if (fewest.statements.length === 0) throw new Error(`not one statement was seen in ${route.route}`);
  return fewest;
}

/** Makes as many groups and teams as the store is to have rows; answers a group and a team that have members. */
async function makeGroups(caller, { rows }, userIds) {
  const post = async (path, json) => JSON.parse((await timedRequest(caller, { method: 'POST', path, json })).body);
  const groupIds = [];
  for (let count = 0; count < rows; count++) {
    groupIds.push((await post('/userGroups', { name: `Counted ${count}`, type: 'custom' }))._id);
    await post('/teams', { name: `Counted ${count}` });
  }
  const some = userIds.slice(0, rows);
  await post('/userGroups/add-users', { userIds: some, groupIds });
  const members = some.slice(1).map((userId) => ({ userId, role: 'READER' }));
  const { team } = await post('/teams', { name: 'All', members });
  return { groupId: groupIds[0], teamId: team.id };
}

/** Invites as many people as the store is to have rows, each by a link to copy, which takes a session. */
async function makeInvitations(caller, { rows }) {
  const authorization = `Bearer ${await signIn(caller.api, administrator)}`;
  for (let count = 0; count < rows; count++) {
    const json = { fullName: `Invited ${count}`, email: `invited-${count}@example.com` };
    const { _id } = JSON.parse((await timedRequest(caller, { method: 'POST', path: '/users', json })).body);
    const path = `/users/${_id}/invite-link`;
    await timedRequest({ ...caller, headers: { authorization } }, { method: 'POST', path });
  }
}

/** Registers as many service clients, and signs in as often, as the store is to have rows; answers the last session. */
async function makeClientsAndSessions(caller, { rows }) {
  let session = null;
  for (let count = 0; count < rows; count++) {
    const json = { name: `Counted ${count}`, scopes: ['USER_LOOKUP'] };
    await timedRequest(caller, { method: 'POST', path: '/service-clients', json });
    session = await signIn(caller.api, administrator);
  }
  return session;
}

/** Sends as many test messages to a webhook where nobody listens as the store is to have rows; answers the webhook. */
async function makeAttempts(caller, { rows }) {
  const json = { url: 'http://127.0.0.1:9/', events: ['orgDeleted'] };
  const { id } = JSON.parse((await timedRequest(caller, { method: 'POST', path: '/webhooks', json })).body);
  for (let count = 0; count < rows; count++) {
    await timedRequest(caller, { method: 'POST', path: `/webhooks/${id}/test` });
  }
  return id;
}

async function countIn(store, tell) {
  const log = join(temporaryFolder(), 'statements');
  const dataDir = await seededStore(store, tell);
  tell(`P14: counting statements with ${store.users} users`);
  const { child, ...server } = await startServer({
    dataDir,
    nodeOptions: ['--import', watcher],
    env: { STATEMENTS_FILE: log, WEBHOOK_NETWORKS: '127.0.0.1' },
  });
  const { token } = await issueTokenFor(server.api, administrator, { scopes, count: store.ownTokens });
  const caller = { ...server, log, headers: { authorization: `Bearer ${token}` } };
  await timedRequest(caller, { path: '/users?page=1' });
  await sleep(writtenBehindMs);
  const first = await watched(caller, { path: '/users' });
  // After a commit nothing that is kept in memory counts: the next request is verified in the store.
  await issueTokenFor(server.api, administrator, { scopes, name: 'another' });
  const wholeList = (await watched(caller, { path: '/users' })).statements;
  const userIds = first.body.map((user) => user._id);
  const webhookId = await makeAttempts(caller, store);
  const place = { rows: store.rows, userIds, webhookId, ...(await makeGroups(caller, store, userIds)) };
  await makeInvitations(caller, store);
  const session = await makeClientsAndSessions(caller, store);
  const signedIn = { ...caller, headers: { authorization: `Bearer ${session}` } };
  await sleep(writtenBehindMs);
  const counts = [];
  for (const route of listRoutes) counts.push(await count(route.bySession ? signedIn : caller, route, place));
  await end(child);
  return { counts, wholeList, firstWholeList: first.statements };
}

async function countAll({ tell }) {
  const few = await countIn(stores.few, tell);
  const many = await countIn(stores.many, tell);
  const compared = listRoutes.map((each, place) => ({
    route: each.route + (each.with ?? ''),
    few: few.counts[place],
    many: many.counts[place],
  }));
  const same = compared.find((each) => each.few.rows >= each.many.rows);
  if (same !== undefined) throw new Error(`${same.route} answered no more rows with more rows in the store`);
  const { wholeList, firstWholeList } = many;
  return { routes: compared, wholeList, firstWholeList };
}

let counted = null;

/**
 * P14 and the statements of P9, counted once: `routes`, each with its statements (SQL) and rows in the store with `few`
 * and with `many` rows, and `wholeList`, the statements of one `GET /users` of 100,000 users, verification included.
 * `firstWholeList` is the very first one, for which the server also opens a connection.
 */
export function countStatements(options) {
  counted ??= countAll(options);
  return counted;
}
