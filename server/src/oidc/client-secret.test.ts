import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { Secret } from '../base/secret.ts';
import { openOidc } from './open-oidc.ts';

const redirectUri = 'https://keys.example.com/api/v1/userAccount/oidc/callback';

/** What a provider looks at in a request for a token. */
interface Asked {
  readonly grant: string;
  readonly isRight: boolean;
}
type Reply = readonly [status: number, body: Readonly<Record<string, string>>, challenge?: string];

const badCode: Reply = [400, { error: 'invalid_grant', error_description: 'unknown code' }];
const badClient: Reply = [401, { error: 'invalid_client', error_description: 'bad secret' }];

describe('the check of the client secret', () => {
  let servers: Server[] = [];
  let asked: Asked[] = [];
  afterEach(async () => {
    for (const server of servers) {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    }
    servers = [];
  });

  /** Checks a secret at a provider that answers so. */
  async function check(reply: (asked: Asked) => Reply, clientSecret = 'right') {
    asked = [];
    const answer = async (request: IncomingMessage, response: ServerResponse) => {
      const issuer = `http://${request.headers.host}`;
      const head = { 'content-type': 'application/json' };
      if (request.method === 'GET') {
        const at = {
          token_endpoint: `${issuer}/token`,
          authorization_endpoint: `${issuer}/a`,
          jwks_uri: `${issuer}/k`,
        };
        response.writeHead(200, head).end(JSON.stringify({ issuer, ...at }));
        return;
      }
      const grant = new URLSearchParams(await text(request)).get('grant_type') ?? '';
      const isRight = request.headers.authorization === `Basic ${Buffer.from('latchkey:right').toString('base64')}`;
      asked.push({ grant, isRight });
      const [status, body, challenge] = reply({ grant, isRight });
      response.writeHead(status, challenge ? { ...head, 'www-authenticate': challenge } : head);
      response.end(JSON.stringify(body));
    };
    const server = createServer((request, response) => {
      answer(request, response).catch((error) => response.destroy(error));
    });
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const settings = { issuer, clientId: 'latchkey', clientSecret: new Secret(clientSecret) };
    const others = { allowedDomains: [], groupIds: [], emailTrust: 'claim', changedAtMs: null } as const;
    return openOidc({ ...settings, ...others }, { clock: systemClock }).checkSecret(redirectUri);
  }
  const proved = { unprovedBecause: null };

  it('proves it where a wrong one gets invalid_client and this one invalid_grant (FIT-3)', async () => {
    expect(await check(({ isRight }) => (isRight ? badCode : badClient))).toEqual(proved);
    expect(asked).toEqual([
      { grant: 'authorization_code', isRight: true },
      { grant: 'authorization_code', isRight: false },
    ]);
  });

  it.each<[string, Reply, string]>([
    ['as Okta does', badClient, 'the provider answers 401 invalid_client: bad secret'],
    [
      'as Keycloak does',
      [401, { error: 'unauthorized_client', error_description: 'Invalid client or Invalid client credentials' }],
      'the provider answers 401 unauthorized_client: Invalid client or Invalid client credentials',
    ],
    [
      'as Auth0 does',
      [401, { error: 'access_denied', error_description: 'Unauthorized' }],
      'the provider answers 401 access_denied: Unauthorized',
    ],
    ['with 400', [400, { error: 'invalid_client' }], 'the provider answers 400 invalid_client'],
    ['with a challenge', [401, {}, 'Basic realm="a"'], 'the provider answers 401'],
  ])('refuses a wrong one where the provider does, %s, and makes up none then (FIT-3)', async (_, reply, said) => {
    const failure = check(({ isRight }) => (isRight ? badCode : reply), 'wrong');
    await expect(failure).rejects.toThrow(`it refuses the client id or secret: ${said}`);
    expect(asked).toHaveLength(1);
  });

  it('proves it by a token of the client where the provider looks at the code first (FIT-3)', async () => {
    const reply = ({ grant, isRight }: Asked): Reply => {
      if (grant === 'authorization_code') return badCode;
      return isRight ? [200, { access_token: 'token-of-the-client', token_type: 'Bearer' }] : badClient;
    };
    expect(await check(reply)).toEqual(proved);
    await expect(check(reply, 'wrong')).rejects.toThrow('it refuses the client id or secret');
  });

  it.each<[string, (asked: Asked) => Reply]>([
    ['gives every secret the same answer', () => badCode],
    [
      'allows the client no token of its own',
      ({ grant }) => (grant === 'authorization_code' ? badCode : [401, { error: 'unauthorized_client' }]),
    ],
    ['fails at the second question', ({ grant }) => (grant === 'authorization_code' ? badCode : [500, {}])],
  ])('says that it is not proved where the provider %s (FIT-3)', async (_, reply) => {
    expect(await check(reply)).toEqual({
      unprovedBecause: 'a made-up secret gets the same answer: the provider answers 400 invalid_grant: unknown code',
    });
  });

  it.each<[string, Reply, string]>([
    ['is overloaded', [429, { error: 'slow_down' }], 'the provider answers 429 slow_down'],
    ['is broken', [500, {}], 'status 500'],
    ['asks for something else', [404, {}], 'status 404'],
  ])('fails where the provider %s (FIT-3)', async (_, reply, said) => {
    await expect(check(() => reply)).rejects.toThrow(said);
  });

  it('never repeats the secret, the made-up one or the code (FIT-3, FIT-4)', async () => {
    const reply: Reply = [400, { error: 'invalid_grant', error_description: 'not for right' }];
    expect((await check(() => reply)).unprovedBecause).toContain('not for [secret]');
    const quoting: Reply = [
      400,
      { error: 'invalid_grant', error_description: 'Authorization: Basic bGF0Y2hrZXk6cmlnaHQ=' },
    ];
    expect((await check(() => quoting)).unprovedBecause).toContain('Authorization: Basic [secret]');
  });
});
