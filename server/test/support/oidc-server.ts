import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';
import { oidcRedirectUri } from '../../src/oidc/oidc.ts';
import { Browser, outcomeOf, signInOfTicket } from './browser.ts';
import { beginSignIn, claimsOf } from './sign-in.ts';
import type { Client, TestApp, TestResponse } from './test-app.ts';
import { TestClock } from './test-clock.ts';

/** Public address of services that use the provider. */
export const publicUrl = 'https://keys.example.com';
export const clientId = 'latchkey';
export const clientSecret = 'hcQ2vTrW-client-secret-of-tests';
/** Address that the provider sends users back to. */
export const callbackUrl = `${publicUrl}/api/v1/userAccount/oidc/callback`;
const scopes = 'openid email profile';
const lifeSeconds = 3_600;

/** Public address of services below a path, which the provider knows as well. */
export const publicUrlBelow = 'https://keys.example.com/id';

/** Returns the address where a sign-in goes to the provider. */
export function startUrlOf(signInToken: string, baseUrl = publicUrl): string {
  return `${baseUrl}/api/v1/userAccount/oidc/start?signIn=${claimsOf(signInToken).jti}`;
}

/** A user of the provider, and the claims about them. */
export interface OidcUser {
  readonly sub: string;
  readonly email?: unknown;
  readonly email_verified?: unknown;
  readonly name?: unknown;
}

/** Actions of a user at the provider, and the resulting claims. */
interface Visit {
  /** Says no when asked whether to go on. */
  readonly denies?: boolean;
  /** The ID token contains the subject only: the rest is at the userinfo endpoint. */
  readonly atUserinfo?: boolean;
  readonly browser?: Browser;
  /** The `x-session-token` of the sign-in that it is for; without it one is begun. */
  readonly token?: string;
}

/** A clock that runs like the provider's, and that tests move as well. */
export class RunningClock extends TestClock {
  #aheadMs = 0;

  override now(): number {
    return Date.now() + this.#aheadMs;
  }

  override advance(ms: number): void {
    this.#aheadMs += ms;
  }

  override set(nowMs: number): void {
    this.#aheadMs = nowMs - Date.now();
  }
}

type Payload = Record<string, unknown> & { grantId?: string; uid?: string; consumed?: number };

/** In-memory storage of one provider. */
function memory() {
  const stored = new Map<string, Payload>();
  return class {
    readonly #model: string;

    constructor(model: string) {
      this.#model = model;
    }

    async upsert(id: string, payload: Payload): Promise<void> {
      stored.set(`${this.#model}:${id}`, payload);
    }

    async find(id: string): Promise<Payload | undefined> {
      return stored.get(`${this.#model}:${id}`);
    }

    async findByUid(uid: string): Promise<Payload | undefined> {
      return [...stored.values()].find((payload) => payload.uid === uid);
    }

    async consume(id: string): Promise<void> {
      const payload = stored.get(`${this.#model}:${id}`);
      if (payload) payload.consumed = Math.floor(Date.now() / 1_000);
    }

    async destroy(id: string): Promise<void> {
      stored.delete(`${this.#model}:${id}`);
    }

    async revokeByGrantId(grantId: string): Promise<void> {
      for (const [key, payload] of stored) if (payload.grantId === grantId) stored.delete(key);
    }
  };
}

async function signingKey() {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return { ...(await exportJWK(privateKey)), kid: 'of-tests', alg: 'RS256', use: 'sig' };
}

/** A real provider of OpenID Connect on 127.0.0.1, where users sign in without a password. */
export class OidcServer {
  readonly #server: Server;
  readonly #people = new Map<string, OidcUser & Visit>();
  #provider: Provider | undefined;
  /** Number of requests, of the service and of browsers. */
  requests = 0;
  #port = 0;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.requests += 1;
      this.#answer(request, response).catch((error) => {
        response.writeHead(500).end(String(error));
      });
    });
  }

  static async start(): Promise<OidcServer> {
    const server = new OidcServer();
    await server.listen();
    await server.#open();
    return server;
  }

  async #open(): Promise<void> {
    const keys = [await signingKey()];
    const findAccount = (_: unknown, sub: string) => {
      const {
        denies: _denies,
        browser: _browser,
        token: _token,
        atUserinfo = false,
        ...user
      } = this.#people.get(sub) ?? { sub };
      return { accountId: sub, claims: async (use: string) => (use === 'id_token' && atUserinfo ? { sub } : user) };
    };
    this.#provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: clientId,
          client_secret: clientSecret,
          redirect_uris: [publicUrl, publicUrlBelow].map((baseUrl) => oidcRedirectUri({ baseUrl })),
        },
      ],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
      conformIdTokenClaims: false,
      findAccount,
      jwks: { keys },
      cookies: { keys: ['cookies of the provider in tests'] },
      adapter: memory(),
      ttl: Object.fromEntries(
        ['AccessToken', 'AuthorizationCode', 'IdToken', 'Interaction', 'Session', 'Grant'].map((one) => [
          one,
          lifeSeconds,
        ]),
      ),
      features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: false } },
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      pkce: { required: () => true },
      clientBasedCORS: () => false,
    });
  }

  /** Listens, after a stop once more where it was. */
  async listen(): Promise<void> {
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Closes all connections and stops listening. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  get issuer(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Configuration of the service for it. */
  get environment(): Record<string, string> {
    return {
      BASE_URL: publicUrl,
      OIDC_ISSUER: this.issuer,
      OIDC_CLIENT_ID: clientId,
      OIDC_CLIENT_SECRET: clientSecret,
      OIDC_ALLOWED_DOMAINS: 'example.com',
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const provider = this.#provider;
    if (!provider) throw new Error('the provider has not started');
    if (!request.url?.startsWith('/interaction/')) return provider.callback()(request, response);
    const sub = new URLSearchParams(await text(request)).get('sub') ?? '';
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    const finish = (result: Record<string, unknown>, mergeWithLastSubmission: boolean) =>
      provider.interactionFinished(request, response, result, { mergeWithLastSubmission });
    if (this.#people.get(sub)?.denies) return finish({ error: 'access_denied' }, false);
    if (prompt.name === 'login') return finish({ login: { accountId: sub } }, false);
    const grant = new provider.Grant({ accountId: session?.accountId ?? sub, clientId: params.client_id });
    grant.addOIDCScope(scopes);
    return finish({ consent: { grantId: await grant.save() } }, true);
  }

  /** Begins a sign-in, goes from the service to the provider and signs in there; answers the address that leads back, not yet opened: where the service leads at once, if it does not lead there. */
  async signIn(browser: Browser, user: OidcUser, visit: Visit = {}): Promise<string> {
    this.#people.set(user.sub, { ...user, ...visit });
    browser.signInToken = visit.token ?? (await beginSignIn(browser.app));
    let { location } = await browser.open(startUrlOf(browser.signInToken, browser.app.services.config.baseUrl));
    while (location?.startsWith(this.issuer)) {
      const isAsked = location.includes('/interaction/');
      ({ location } = await browser.open(location, isAsked ? { sub: user.sub } : undefined));
    }
    if (location === null) throw new Error('the provider led nowhere');
    return location;
  }

  /** Walks the whole way in a browser; answers the address of the sign-in page that it ends at. */
  async walk(app: TestApp, user: OidcUser, visit: Visit = {}): Promise<string> {
    const { browser = new Browser(app) } = visit;
    const back = await this.signIn(browser, user, visit);
    if (!back.startsWith(oidcRedirectUri(app.services.config))) return back;
    const { location, status, text: page } = await browser.open(back);
    if (location === null) throw new Error(`the service led nowhere: ${status} ${page}`);
    const { oidc: ticket } = outcomeOf(location);
    if (ticket !== undefined) app.keepSecret(ticket);
    return location;
  }
}

/** Allows sign-in by the provider as well as by password, or the given steps. */
export async function allowOidc(admin: Client, steps: readonly string[][] = [['password', 'oidc']]): Promise<void> {
  const authMethod = steps.map((types, at) => ({ order: at + 1, allowedMethods: types.map((type) => ({ type })) }));
  const { status, text } = await admin.post('/orgAuthConfig/updateAuthMethod', { authMethod });
  if (status !== 200) throw new Error(`not allowed: ${status} ${text}`);
}

/** Signs a user in by the provider, an administrator by default: then a step may depend on it. */
export async function proveOidc(provider: OidcServer, app: TestApp, email = 'ada@example.com'): Promise<void> {
  const outcome = outcomeOf(await provider.walk(app, { sub: email, email, email_verified: true }));
  const { status, text } = await showTicket(app, outcome);
  if (status !== 200) throw new Error(`not signed in: ${status} ${text} ${JSON.stringify(outcome)}`);
}

/** Shows a ticket as the sign-in page does: in the sign-in that it was fetched for, or in the one of `token`. */
export async function showTicket(
  app: TestApp,
  { oidc, email }: Readonly<Record<string, string>>,
  token?: string,
): Promise<TestResponse> {
  const headers = { 'x-session-token': token ?? signInOfTicket.get(oidc ?? '') ?? (await beginSignIn(app)) };
  return app.anonymous.post('/userAccount/authenticate', { method: 'oidc', credentials: { oidc }, email }, { headers });
}
