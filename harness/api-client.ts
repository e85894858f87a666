// biome-ignore lint/suspicious/noExplicitAny: tests check answers against the OpenAPI document, others look at what they need
export type Json = any;

/** The organization that is created for tests, and its first administrator. */
export const organization = {
  accountType: 'business',
  contactEmail: 'ada@example.com',
  registeredName: 'Example Ltd',
  adminFullName: 'Ada Lovelace',
  password: 'Marble-Kettle-7',
} as const;

/** An address and a password. */
export interface User {
  readonly email: string;
  readonly password: string;
}

/** Its administrator. */
export const administrator: User = { email: organization.contactEmail, password: organization.password };

/** What a call may carry. */
export interface CallOptions {
  readonly body?: unknown;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a call was answered. */
export interface Answer {
  readonly status: number;
  readonly body: Json;
  readonly headers: Headers;
}

/** The API of a service at an address, such as http://127.0.0.1:3000. */
export class ApiClient {
  /** Empty while it is not known. */
  url: string;

  constructor(url = '') {
    this.url = url;
  }

  get api(): string {
    return `${this.url}/api/v1`;
  }

  /** The status of `/health/live` or `/health/ready`. */
  async health(which: 'live' | 'ready'): Promise<number> {
    const response = await fetch(`${this.url}/health/${which}`);
    await response.text();
    return response.status;
  }

  /** Calls `path` and reads the answer, whatever its status. Rejects where none comes within a minute. */
  async call(method: string, path: string, { body, token, headers }: CallOptions = {}): Promise<Answer> {
    const response = await fetch(`${this.api}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? {} : JSON.parse(text), headers: response.headers };
  }

  /** Calls `path`. Throws unless the status is 2xx. */
  async ask(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const response = await this.call(method, path, options);
    if (response.status >= 200 && response.status < 300) return response;
    const said = JSON.stringify(response.body).slice(0, 300);
    throw new Error(`${method} ${path} was answered ${response.status}: ${said}`);
  }

  /** Begins to sign in; returns the value of `x-session-token`. */
  async beginSignIn(): Promise<string> {
    const { headers } = await this.ask('POST', '/userAccount/initAuth');
    return headers.get('x-session-token') ?? '';
  }

  /** Goes on to sign in with a password. */
  authenticate(begun: string, { email, password }: User = administrator): Promise<Answer> {
    const body = { method: 'password', credentials: { password }, email };
    return this.call('POST', '/userAccount/authenticate', { body, headers: { 'x-session-token': begun } });
  }

  /** Signs in; returns the pair of tokens. */
  async signIn(user: User = administrator): Promise<{ readonly accessToken: string; readonly refreshToken: string }> {
    const { status, body } = await this.authenticate(await this.beginSignIn(), user);
    if (status !== 200) throw new Error(`not signed in: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** Creates the organization and signs its administrator in; returns the session's access token. */
  async setUp(): Promise<string> {
    await this.ask('POST', '/org', { body: organization });
    return (await this.signIn()).accessToken;
  }

  /** Issues a personal access token; returns its text. */
  async issueToken(session: string, wanted: Readonly<Record<string, unknown>>): Promise<string> {
    const { body } = await this.ask('POST', '/personal-access-tokens', { token: session, body: wanted });
    return body.token.accessToken;
  }
}
