import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose';

type Claims = Readonly<Record<string, unknown>>;
type ProviderResponse = (response: ServerResponse) => void;
type Place = 'discovery' | 'jwks' | 'token' | 'userinfo';
type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;

/** Deviations of the provider from a correct one. */
interface Faults {
  /** Other claims in the ID token; `undefined` leaves one out. */
  readonly claims?: Claims;
  readonly header?: Partial<JWTHeaderParameters>;
  /** Signs with a key that it does not publish. */
  readonly isForged?: boolean;
  /** Makes something else of the ID token, `undefined`: nothing. */
  readonly idToken?: (good: string) => string | undefined;
  /** Other fields in its description. */
  readonly description?: Claims;
  readonly userinfo?: Claims;
  /** Answers at a place as no provider does. */
  readonly at?: Readonly<Partial<Record<Place, ProviderResponse>>>;
}

/** Answers with a text. */
export function says(status: number, body: string, headers: Readonly<Record<string, string>> = {}): ProviderResponse {
  return (response) => void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}

/** Responds with JSON that ends after a number of bytes; `sent` is called with the bytes sent so far. */
export function saysMuch(bytes: number, sent: (bytes: number) => void): ProviderResponse {
  return (response) => {
    const part = Buffer.alloc(65_536, ' ');
    let count = 0;
    response.writeHead(200, { 'content-type': 'application/json' });
    const goOn = () => {
      while (count < bytes && !response.destroyed) {
        count += part.length;
        sent(count);
        if (!response.write(part)) return;
      }
      if (count >= bytes) response.end('{}');
    };
    response.on('drain', goOn);
    response.write('{');
    goOn();
  };
}

/** Answers a byte every so often, and does not end. */
export function drips(everyMs: number): ProviderResponse {
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const timer = setInterval(() => response.write(' '), everyMs);
    response.on('close', () => clearInterval(timer));
  };
}

/** Accepts and says nothing. */
export const saysNothing: ProviderResponse = () => {};

/** A provider of OpenID Connect that misbehaves as a test wants. */
export class HandmadeProvider {
  /** Faults from now on. */
  faults: Faults = {};
  /** The places that were asked for, in order. */
  readonly asked: Place[] = [];
  /** The last request for tokens. */
  tokenRequest: { readonly authorization: string | undefined; readonly body: URLSearchParams } | undefined;
  /** Set by the test: the nonce that the service sent with the browser. */
  nonce = '';
  readonly path: string;
  readonly #keys: KeyPair;
  readonly #otherKeys: KeyPair;
  readonly #nowMs: () => number;
  readonly #server: Server;
  #port = 0;

  private constructor(parts: { keys: KeyPair; otherKeys: KeyPair; nowMs: () => number; path: string }) {
    this.#keys = parts.keys;
    this.#otherKeys = parts.otherKeys;
    this.#nowMs = parts.nowMs;
    this.path = parts.path;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error) => response.destroy(error));
    });
  }

  /** @param path of the issuer below the root, such as `/realms/a/`, the slash at its end being part of it */
  static async start(nowMs: () => number, path = ''): Promise<HandmadeProvider> {
    const make = () => generateKeyPair('RS256', { extractable: true });
    const provider = new HandmadeProvider({ keys: await make(), otherKeys: await make(), nowMs, path });
    await provider.#listen();
    return provider;
  }

  async #listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  get issuer(): string {
    return `http://127.0.0.1:${this.#port}${this.path}`;
  }

  /** Its metadata. */
  get #description(): Claims {
    const below = this.issuer.replace(/\/$/, '');
    return {
      issuer: this.issuer,
      authorization_endpoint: `${below}/authorize`,
      token_endpoint: `${below}/token`,
      userinfo_endpoint: `${below}/userinfo`,
      jwks_uri: `${below}/jwks`,
      id_token_signing_alg_values_supported: ['RS256'],
      ...this.faults.description,
    };
  }

  async #idToken(audience: string): Promise<string | undefined> {
    const { claims, header, isForged = false, idToken = (good) => good } = this.faults;
    const iat = Math.floor(this.#nowMs() / 1_000);
    const identity = { sub: 'subject-1', email: 'ada@example.com', email_verified: true, name: 'Ada' };
    const usual = { iss: this.issuer, aud: audience, nonce: this.nonce, iat, exp: iat + 300, ...identity };
    const { privateKey } = isForged ? this.#otherKeys : this.#keys;
    const jwt = new SignJWT({ ...usual, ...claims }).setProtectedHeader({ alg: 'RS256', kid: 'one', ...header });
    return idToken(await jwt.sign(privateKey));
  }

  async #good(place: Place, request: IncomingMessage): Promise<unknown> {
    if (place === 'discovery') return this.#description;
    if (place === 'jwks') {
      return { keys: [{ ...(await exportJWK(this.#keys.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }] };
    }
    if (place === 'userinfo') return { sub: 'subject-1', ...this.faults.userinfo };
    this.tokenRequest = {
      authorization: request.headers.authorization,
      body: new URLSearchParams(await text(request)),
    };
    const id_token = await this.#idToken('latchkey');
    return { access_token: 'access-token-of-the-provider', token_type: 'Bearer', expires_in: 300, id_token };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const last = request.url?.split('/').at(-1)?.split('?')[0];
    const place = last === 'openid-configuration' ? 'discovery' : (last as Place);
    this.asked.push(place);
    const odd = this.faults.at?.[place];
    if (odd) return odd(response);
    says(200, JSON.stringify(await this.#good(place, request)))(response);
  }
}
