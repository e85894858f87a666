import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A token endpoint (RFC 6749) on 127.0.0.1 for one client, with refresh tokens. */
export class TokenEndpoint {
  /** Access tokens that are valid now: those that a mail server takes. */
  readonly accessTokens = new Set<string>();
  /** Every request: the fields of its form. */
  readonly asked: Readonly<Record<string, string>>[] = [];
  /** What it answers instead of a token. */
  refusal: { readonly status: number; readonly body: string } | null = null;
  /** The refresh token that it takes, and one that it issues instead; `null`: the same stays. */
  refreshToken = 'Refresh-Token-4711';
  nextRefreshToken: string | null = null;
  readonly clientSecret = 'Client-Secret-4711';
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      let text = '';
      request.on('data', (part: Buffer) => {
        text += part.toString();
      });
      request.on('end', () => {
        const { status, body } = this.#answer(Object.fromEntries(new URLSearchParams(text)));
        response.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(body);
      });
    });
  }

  static async start(): Promise<TokenEndpoint> {
    const endpoint = new TokenEndpoint();
    endpoint.#server.listen(0, '127.0.0.1');
    await once(endpoint.#server, 'listening');
    return endpoint;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/token`;
  }

  #answer(form: Readonly<Record<string, string>>): { readonly status: number; readonly body: string } {
    this.asked.push(form);
    if (this.refusal) return this.refusal;
    const isRight = form['refresh_token'] === this.refreshToken && form['client_secret'] === this.clientSecret;
    if (!isRight) {
      const error_description = `AADSTS70008: The refresh token ${form['refresh_token']} has expired`;
      return { status: 400, body: JSON.stringify({ error: 'invalid_grant', error_description }) };
    }
    const access_token = `access-token-${this.asked.length}-of-the-mailbox`;
    this.accessTokens.add(access_token);
    if (this.nextRefreshToken !== null) this.refreshToken = this.nextRefreshToken;
    return { status: 200, body: JSON.stringify({ access_token, expires_in: 3600, refresh_token: this.refreshToken }) };
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}
