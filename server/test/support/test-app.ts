import { readdirSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import pino from 'pino';
import { liveConfig } from '../../src/config/live-config.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { setPassword } from '../../src/features/passwords/public.ts';
import type { MailPauses } from '../../src/mail/mail-pauses.ts';
import { compose, type Service } from '../../src/process/compose.ts';
import { maskCredentials } from '../../src/process/log.ts';
import type { AllServices } from '../../src/services.ts';
import { checkAgainstContract } from './contract-check.ts';
import { compactJwt, hmac } from './jwt.ts';
import { mailedSecrets } from './mailed-secrets.ts';
import { running } from './running.ts';
import { TestClock } from './test-clock.ts';
import { dropTestStore, newDataDir, testStore } from './test-store.ts';

/** Password of all users in tests. */
export const password = 'Marble-Kettle-7';
const adminEmail = 'ada@example.com';
/** Secret that tests share with trusted services. */
const scopedSecret = 'tests-share-this-with-services-4711';

export const organization = {
  accountType: 'business',
  contactEmail: adminEmail,
  registeredName: 'Example Ltd',
  adminFullName: 'Ada Lovelace',
  password,
} as const;

// biome-ignore lint/suspicious/noExplicitAny: answers are checked against the OpenAPI document before tests look in
export type Json = any;

export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
  readonly text: string;
  readonly bytes: Buffer;
}

interface CallOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is, in place of `body`. */
  readonly raw?: string | Uint8Array<ArrayBuffer>;
  /** Sent as multipart/form-data, in place of `body`. */
  readonly form?: FormData;
}

/** A caller of the service, with or without a credential. */
export class Client {
  readonly #app: TestApp;
  readonly credential: string | null;
  readonly userId: string;

  constructor(app: TestApp, credential: string | null, userId = '') {
    this.#app = app;
    this.credential = credential;
    this.userId = userId;
  }

  /** Calls `path` below /api/v1 (or from the root, where it starts with `//`). */
  async call(method: string, path: string, options: CallOptions = {}): Promise<TestResponse> {
    const url = path.startsWith('//') ? path.slice(1) : `/api/v1${path}`;
    const headers = new Headers(options.headers);
    if (this.credential !== null && !headers.has('authorization')) {
      headers.set('authorization', `Bearer ${this.credential}`);
    }
    let sent: string | Uint8Array<ArrayBuffer> | FormData | undefined = options.form ?? options.raw;
    if (options.body !== undefined) {
      sent = JSON.stringify(options.body);
      if (!headers.has('content-type')) headers.set('content-type', 'application/json');
    }
    const response = await fetch(this.#app.url + url, {
      method,
      headers,
      // Where an answer leads to is not opened: it is what is asked about.
      redirect: 'manual',
      ...(sent === undefined ? {} : { body: sent }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const text = bytes.toString();
    const isJson = method !== 'HEAD' && /^application\/json\b/.test(response.headers.get('content-type') ?? '');
    const body = isJson ? JSON.parse(text) : text;
    const reply = { status: response.status, headers: response.headers, body, text, bytes };
    if (isJson) checkAgainstContract(method, url, { ...reply, hasBackend: this.#app.services.connector !== null });
    this.#app.remember(reply);
    return reply;
  }

  get(path: string, options?: CallOptions): Promise<TestResponse> {
    return this.call('GET', path, options);
  }

  post(path: string, body?: unknown, options?: CallOptions): Promise<TestResponse> {
    return this.call('POST', path, { ...options, body });
  }

  put(path: string, body?: unknown, options?: CallOptions): Promise<TestResponse> {
    return this.call('PUT', path, { ...options, body });
  }

  patch(path: string, body?: unknown, options?: CallOptions): Promise<TestResponse> {
    return this.call('PATCH', path, { ...options, body });
  }

  /** Sends one file in the field `file` of a form, as a browser does. */
  upload(path: string, bytes: Uint8Array<ArrayBuffer>, type = 'image/png'): Promise<TestResponse> {
    const form = new FormData();
    form.append('file', new Blob([bytes], { type }), 'picture');
    return this.call('PUT', path, { form });
  }

  delete(path: string, body?: unknown, options?: CallOptions): Promise<TestResponse> {
    return this.call('DELETE', path, { ...options, body });
  }

  /** Makes a personal access token and answers a client that uses it. */
  async token(input: { scopes?: string[]; expiryDays?: number | 'never'; name?: string } = {}): Promise<TokenClient> {
    const { status, body, text } = await this.post('/personal-access-tokens', { name: 'test', ...input });
    if (status !== 201) throw new Error(`no token: ${status} ${text}`);
    return new TokenClient(this.#app, body.token, this.userId);
  }
}

/** A client that uses a personal access token. */
export class TokenClient extends Client {
  readonly tokenId: string;

  constructor(app: TestApp, token: { accessToken: string; id: string }, userId: string) {
    super(app, token.accessToken, userId);
    this.tokenId = token.id;
  }
}

type Environment = Readonly<Record<string, string>>;

/** Hashes that cost next to nothing: tests sign users in all the time, and few are about the hash. */
const cheap = { memoryCost: 8, timeCost: 1 };

interface StartOptions {
  /** Hashes passwords at the cost that they have in use. */
  readonly isHashDear?: boolean;
  /**
   * Milliseconds that requests may wait before they are rejected; default: for ever, since a busy machine is no fault.
   */
  readonly waitMsMax?: number;
  /** Before further attempts at mails; default: two short ones. */
  readonly mailPauses?: MailPauses;
}

const shortPauses: MailPauses = { waited: [5, 5], background: [5, 5] };

/** A whole service on a free port, with a store of its own and a clock that tests move. */
export class TestApp {
  readonly clock: TestClock;
  readonly dataDir: string;
  readonly url: string;
  /** Every line that was logged, at the most talkative level, before masking. */
  readonly logLines: string[];
  /** Environment that the next reload of the configuration reads. */
  readonly environment: Record<string, string>;
  readonly #service: Service;
  readonly #secrets = new Set<string>([password, scopedSecret]);

  private constructor(parts: {
    service: Service;
    clock: TestClock;
    dataDir: string;
    logLines: string[];
    environment: Record<string, string>;
  }) {
    this.environment = parts.environment;
    this.#service = parts.service;
    this.clock = parts.clock;
    this.dataDir = parts.dataDir;
    this.logLines = parts.logLines;
    const { port } = parts.service.app.server.address() as AddressInfo;
    this.url = `http://127.0.0.1:${port}`;
    running.add(this);
  }

  /** Starts a service without an organization. Request limits are off unless the environment says otherwise. */
  static async start(
    environment: Environment = {},
    clock = new TestClock(),
    { isHashDear = false, waitMsMax = Number.POSITIVE_INFINITY, mailPauses = shortPauses }: StartOptions = {},
  ): Promise<TestApp> {
    const dataDir = environment['DATA_DIR'] ?? newDataDir('DATABASE_URL' in environment);
    const given = {
      ...('DATABASE_URL' in environment ? {} : await testStore(dataDir)),
      // Mail servers, providers and receivers of tests are on this machine.
      ...('WEBHOOK_NETWORKS' in environment ? {} : { OUTBOUND_NETWORKS: '127.0.0.0/8,::1' }),
      RATE_LIMIT: 'off',
      PORT: '0',
      SCOPED_JWT_SECRET: scopedSecret,
      ...environment,
      DATA_DIR: dataDir,
    };
    const live = liveConfig((running) => loadConfig(given, running));
    const logLines: string[] = [];
    const log = pino({ level: 'trace', base: null }, { write: (line) => void logLines.push(line) });
    const cost = isHashDear ? {} : { passwordCost: cheap };
    const service = await compose({ live, clock, log, waitMsMax, mailPauses, ...cost });
    await service.app.listen({ host: '127.0.0.1', port: 0 });
    return new TestApp({ service, clock, dataDir, logLines, environment: given });
  }

  get services(): AllServices {
    return this.#service.services;
  }

  get app(): Service['app'] {
    return this.#service.app;
  }

  /** A caller without a credential. */
  get anonymous(): Client {
    return new Client(this, null);
  }

  /**
   * Returns a service with a scoped token that it signed itself, as trusted services do; with any claims besides
   * `scopes` and `exp`.
   */
  service(scopes: unknown = ['USER_LOOKUP'], claims: Readonly<Record<string, unknown>> = {}): Client {
    const exp = Math.floor(this.clock.now() / 1_000) + 3_600;
    const token = compactJwt({ alg: 'HS256' }, { scopes, exp, ...claims }, hmac(scopedSecret));
    this.#secrets.add(token);
    return new Client(this, token);
  }

  /** A client with any credential. */
  with(credential: string | null): Client {
    return new Client(this, credential);
  }

  /** Creates the organization and answers its administrator, signed in. */
  async setUp(): Promise<Client> {
    const { status, text } = await this.anonymous.post('/org', organization);
    if (status !== 200) throw new Error(`no organization: ${status} ${text}`);
    return this.signIn(adminEmail);
  }

  /** Signs a user in over the API. */
  async signIn(email: string): Promise<Client> {
    const { body } = await this.signInTokens(email);
    const claims = JSON.parse(Buffer.from(body.accessToken.split('.')[1], 'base64url').toString());
    return new Client(this, body.accessToken, claims.userId);
  }

  /** Signs a user in over the API and returns the last response. */
  async signInTokens(email: string, secret: string = password): Promise<TestResponse> {
    const begun = await this.anonymous.post('/userAccount/initAuth', { email });
    const token = begun.headers.get('x-session-token') ?? '';
    const body = { method: 'password', credentials: { password: secret }, email };
    return this.anonymous.post('/userAccount/authenticate', body, { headers: { 'x-session-token': token } });
  }

  /** Creates a user who is no administrator, sets the password of tests and signs in. */
  async member(admin: Client, email: string, fullName = 'Grace Hopper'): Promise<Client> {
    const { status, body, text } = await admin.post('/users', { fullName, email });
    if (status !== 201) throw new Error(`no user: ${status} ${text}`);
    const passwordHash = await this.services.passwords.hash(password);
    const { db, clock } = this.services;
    await db.transaction((tx) => setPassword(tx, { userId: body._id, passwordHash, nowMs: clock.now() }));
    return this.signIn(email);
  }

  /** Deletes a user, who must not be an administrator. */
  async deleteUser(userId: string): Promise<void> {
    const { status, text } = await (await this.signIn(adminEmail)).delete(`/users/${userId}`);
    if (status !== 200) throw new Error(`not deleted: ${status} ${text}`);
  }

  /** Deletes the organization. */
  async deleteOrganization(): Promise<void> {
    const { status, text } = await (await this.signIn(adminEmail)).delete('/org');
    if (status !== 200) throw new Error(`not deleted: ${status} ${text}`);
  }

  /** Removes the administrator's role of a user, in the store. */
  async demote(userId: string): Promise<void> {
    await this.services.db.transaction((tx) =>
      tx
        .deleteFrom('group_members')
        .where('user_id', '=', userId)
        .where('group_id', 'in', (eb) => eb.selectFrom('user_groups').where('type', '=', 'admin').select('id'))
        .execute(),
    );
  }

  /** Gives a user the administrator's role, in the store. */
  async promote(userId: string): Promise<void> {
    await this.services.db.transaction(async (tx) => {
      const groups = tx.selectFrom('user_groups').where('type', '=', 'admin').select('id');
      const { id } = await groups.executeTakeFirstOrThrow();
      await tx.insertInto('group_members').values({ group_id: id, user_id: userId }).execute();
    });
  }

  /** Every row of the outbox, in order, its payload parsed. */
  async events(): Promise<Json[]> {
    const rows = await this.services.db.read.selectFrom('outbox').orderBy('sequence').selectAll().execute();
    return rows.map((row) => ({ ...row, payload: JSON.parse(row.payload) }));
  }

  /** Every row of the audit log, in order, its details parsed. */
  async audit(): Promise<Json[]> {
    const rows = await this.services.db.read.selectFrom('audit_log').orderBy('sequence').selectAll().execute();
    return rows.map((row) => ({ ...row, details: JSON.parse(row.details), changes: JSON.parse(row.changes) }));
  }

  /** Notes the secrets in an answer, so that `close` can look for them. */
  remember({ headers, body }: TestResponse): void {
    const given = [headers.get('x-session-token'), body?.accessToken, body?.refreshToken, body?.token?.accessToken];
    given.push(body?.clientSecret, body?.access_token, body?.secret);
    for (const secret of given) if (typeof secret === 'string') this.#secrets.add(secret.replace(/^\w+_(?=eyJ)/, ''));
    const inLink = typeof body?.link === 'string' ? body.link.split('#token=')[1] : undefined;
    if (inLink) this.#secrets.add(inLink);
  }

  /** Notes a secret that came in some other way, so that `close` can look for it. Those of mails are known anyway. */
  keepSecret(secret: string): void {
    this.#secrets.add(secret);
  }

  /** Closes the service without removing what it stored. */
  async stop(): Promise<void> {
    await this.#service.close();
    running.delete(this);
  }

  /** Closes the service, makes sure that no secret was written anywhere, and removes its files. */
  async close(): Promise<void> {
    await this.stop();
    try {
      this.#checkForSecrets();
    } finally {
      rmSync(this.dataDir, { recursive: true, force: true });
      await dropTestStore(this.dataDir);
    }
  }

  #checkForSecrets(): void {
    const files = readdirSync(this.dataDir).map((name) => [name, readFileSync(join(this.dataDir, name), 'latin1')]);
    const places = [...files, ['the log', this.logLines.join('\n')]] as [string, string][];
    for (const secret of [...this.#secrets, ...mailedSecrets]) {
      const place = places.find(([, content]) => content.includes(secret));
      if (place) throw new Error(`a secret stands in clear in ${place[0]}: ${maskCredentials(secret)}`);
    }
  }
}
