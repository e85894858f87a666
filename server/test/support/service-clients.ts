import type { Client, TestApp, TestResponse } from './test-app.ts';

/** A service client as its registration showed it, secret included. */
export interface RegisteredService {
  readonly clientId: string;
  readonly clientSecret: string;
}

/** Registers a service, for everything unless said otherwise. */
export async function registerService(
  by: Client,
  scopes: readonly string[] = ['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ', 'TOKEN_INTROSPECT'],
  name = 'connector',
): Promise<RegisteredService> {
  const { status, body, text } = await by.post('/service-clients', { name, scopes });
  if (status !== 201) throw new Error(`no service: ${status} ${text}`);
  return body;
}

/** The header of HTTP Basic, both parts encoded as RFC 6749, section 2.3.1, has it. */
export function basic({ clientId, clientSecret }: RegisteredService): Readonly<Record<string, string>> {
  const pair = `${encodeURIComponent(clientId)}:${encodeURIComponent(clientSecret)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** Returns a function that posts forms, as they are or made of fields. */
export function formTo(app: TestApp) {
  return (
    path: string,
    fields: string | Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<TestResponse> => {
    const raw = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString();
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    return app.anonymous.call('POST', path, { raw, headers: { ...type, ...headers } });
  };
}

/** Asks for a scoped token: a form, the client by HTTP Basic. */
export function askToken(
  app: TestApp,
  service: RegisteredService,
  fields: Readonly<Record<string, string>> = {},
): Promise<TestResponse> {
  return formTo(app)('/oauth2/token', { grant_type: 'client_credentials', ...fields }, basic(service));
}

/** A client of the API that uses a scoped token which was issued to a service. */
export async function issuedTo(
  app: TestApp,
  service: RegisteredService,
  fields: Readonly<Record<string, string>> = {},
): Promise<Client & { readonly credential: string }> {
  const { status, body, text } = await askToken(app, service, fields);
  if (status !== 200) throw new Error(`no scoped token: ${status} ${text}`);
  return app.with(body.access_token) as Client & { readonly credential: string };
}

/** Introspects a token: a form, the client by HTTP Basic. */
export function introspect(app: TestApp, service: RegisteredService, token: string): Promise<TestResponse> {
  return formTo(app)('/oauth2/introspect', { token }, basic(service));
}

/** Characters that RFC 6749, section 5.2, allows in a description. */
export const describable = /^[ !#-[\]-~]+$/;
