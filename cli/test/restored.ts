import { embeddedStore } from '../../server/test/support/embedded-store.ts';
import { ServerProcess } from '../../server/test/support/server-process.ts';
import { type Json, organization, password } from '../../server/test/support/test-app.ts';

/** Starts a server on the embedded store of a directory, whatever other tests run on. */
export function serverOn(dataDir: string): Promise<ServerProcess> {
  return ServerProcess.start({ DATA_DIR: dataDir, DATABASE_URL: '', RATE_LIMIT: 'off' });
}

/** Reads rows of the embedded store of a directory. */
export function query(dataDir: string, sql: string): Json[] {
  const store = embeddedStore(dataDir);
  try {
    return store.prepare(sql).all();
  } finally {
    store.close();
  }
}

/** Every row of the embedded store of a directory, by its table. */
export function tablesAt(dataDir: string): Readonly<Record<string, readonly Json[]>> {
  const names = query(dataDir, "SELECT name FROM sqlite_master WHERE type = 'table'").map(({ name }) => String(name));
  return Object.fromEntries(names.map((name) => [name, query(dataDir, `SELECT * FROM "${name}"`)]));
}

/** Calls a route, `GET /org`, that is expected to answer 200 or 201; answers the body. */
export async function done(
  server: ServerProcess,
  route: string,
  { token, body }: { readonly token?: string | undefined; readonly body?: unknown },
): Promise<Json> {
  const [method = '', path = ''] = route.split(' ');
  const { status, body: response } = await server.call(method, path, { token, body });
  if (status >= 300) throw new Error(`${route}: ${status} ${JSON.stringify(response)}`);
  return response;
}

/** Signs a user in; returns status and body. */
export async function signIn(server: ServerProcess, email: string, secret: string = password) {
  const headers = { 'x-session-token': await server.beginSignIn() };
  const body = { method: 'password', credentials: { password: secret }, email };
  return server.call('POST', '/userAccount/authenticate', { body, headers });
}

/** A member who has set a password by an invitation, signed in. */
export async function member(server: ServerProcess, admin: string, name: string) {
  const email = `${name}@example.com`;
  const { _id: id } = await done(server, 'POST /users', { token: admin, body: { fullName: `Person ${name}`, email } });
  const { link } = await done(server, `POST /users/${id}/invite-link`, { token: admin });
  const secret = String(link).split('#token=')[1];
  await done(server, 'POST /userAccount/password/reset/token', { token: secret, body: { password } });
  const { accessToken, refreshToken } = (await signIn(server, email)).body;
  return { id: String(id), email, session: String(accessToken), refresh: String(refreshToken) };
}

/** Creates a personal access token of a user. */
export async function tokenOf(server: ServerProcess, session: string, name: string) {
  const { token } = await done(server, 'POST /personal-access-tokens', { token: session, body: { name } });
  return { id: String(token.id), raw: String(token.accessToken) };
}

/** The status of a call with a credential. */
export async function statusOf(
  server: ServerProcess,
  token: string,
  path = '/personal-access-tokens',
): Promise<number> {
  return (await server.call('GET', path, { token })).status;
}

/** The sign-in of the first administrator. */
export const administrator = organization.contactEmail;
