import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HandmadeProvider } from '../support/handmade-provider.ts';
import { MailServer } from '../support/mail-server.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const inside = 'no valid response, from an address that is not public';
const forbidden = 'the address is not public, and not in OUTBOUND_NETWORKS';
const clientSecret = 'the-secret-of-the-client-4711';

/** Listeners, by their behaviour. */
const behaviours: Readonly<Record<string, (socket: Socket) => void>> = {
  'an open port that hangs up': (socket) => socket.destroy(),
  'an open port that speaks something else': (socket) => void socket.end('SSH-2.0-OpenSSH_9.2\r\n'),
};

describe('settings of administrators that lead inside (CONFIG-40)', () => {
  let app: TestApp;
  let admin: Client;
  const servers: Server[] = [];
  /** Connections that were made, and the data received. */
  let connections: string[] = [];

  beforeAll(async () => {
    app = await TestApp.start({ OUTBOUND_NETWORKS: '127.0.0.0/8' });
    admin = await app.setUp();
  });
  afterAll(async () => {
    await app.close();
    for (const server of servers) server.close();
  });
  afterEach(() => allow('127.0.0.0/8'));

  function allow(networks: string): void {
    app.environment['OUTBOUND_NETWORKS'] = networks;
    app.services.reloadConfig();
    connections = [];
  }

  async function listen(behave: (socket: Socket) => void): Promise<number> {
    const server = createServer((socket) => {
      connections.push('connected');
      socket.on('data', (data) => connections.push(String(data))).on('error', () => {});
      behave(socket);
    }).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    const address = server.address();
    return typeof address === 'object' ? Number(address?.port) : 0;
  }

  /** A port at which nothing listens any more. */
  async function closedPort(): Promise<number> {
    const port = await listen(() => {});
    const server = servers.pop();
    server?.close();
    if (server) await once(server, 'close');
    return port;
  }

  const kinds = {
    oidc: (host: string, port: number) => ({ issuer: `http://${host}:${port}`, clientId: 'latchkey', clientSecret }),
    smtp: (host: string, port: number) => ({ host, port, security: 'none', from: 'no-reply@example.com' }),
  } as const;

  /**
   * Returns the response to an administrator who stores settings and tests them; stored settings stay when the networks
   * change.
   */
  async function tried(kind: keyof typeof kinds, port: number, networks: string): Promise<string> {
    const { status, text } = await admin.put(`/settings/${kind}`, kinds[kind]('127.0.0.1', port));
    expect(status, text).toBe(200);
    allow(networks);
    const response = await admin.post(`/settings/${kind}/test`);
    expect(response.status).toBe(502);
    allow('127.0.0.0/8');
    return response.body.message;
  }

  describe.each(['oidc', 'smtp'] as const)('%s', (kind) => {
    it('502: open and closed ports are told apart by nothing, and nothing is connected to, where none is listed', async () => {
      const closed = await tried(kind, await closedPort(), '');
      expect(closed).toContain(forbidden);
      for (const [name, behave] of Object.entries(behaviours)) {
        const port = await listen(behave);
        expect(await tried(kind, port, ''), name).toBe(closed);
        expect(connections, name).toEqual([]);
      }
    });

    it('502: nor are they where the network is listed, but for what answers as it should', async () => {
      const closed = await tried(kind, await closedPort(), '127.0.0.0/8');
      expect(closed).toContain(inside);
      expect(closed).not.toMatch(/ECONN|127\.0\.0\.1/);
      for (const [name, behave] of Object.entries(behaviours)) {
        expect(await tried(kind, await listen(behave), '127.0.0.0/8'), name).toBe(closed);
      }
    });

    it.each([['127.0.0.1'], ['10.0.0.1'], ['[::1]'], ['[::ffff:127.0.0.1]'], ['localhost']])(
      '400: %s cannot be stored where it is not listed',
      async (host) => {
        allow('192.0.2.0/24');
        const given = kind === 'smtp' ? host.replace(/^\[|\]$/g, '') : host;
        const https = { issuer: `https://${host}:8443`, clientId: 'latchkey', clientSecret };
        const body = kind === 'oidc' ? https : kinds.smtp(given, 25);
        const { status, body: told } = await admin.put(`/settings/${kind}`, body);
        const field = kind === 'oidc' ? 'body.issuer' : 'body.host';
        expect([status, told.error.details]).toEqual([
          400,
          [{ field, message: 'must lead to a public address, or one in OUTBOUND_NETWORKS' }],
        ]);
      },
    );
  });

  it('502: the address of a name is judged when it is connected to', async () => {
    for (const [kind, body] of [
      ['oidc', { issuer: 'https://ip6-localhost', clientId: 'latchkey', clientSecret }],
      ['smtp', kinds.smtp('ip6-localhost', 25)],
    ] as const) {
      expect((await admin.put(`/settings/${kind}`, body)).status).toBe(200);
      allow('');
      const { status, body: told } = await admin.post(`/settings/${kind}/test`);
      expect([status, told.message]).toEqual([
        502,
        expect.stringMatching(new RegExp(`${forbidden}|ENOTFOUND|EAI_AGAIN`)),
      ]);
      allow('127.0.0.0/8');
    }
  });
});

describe('what the operator configured (CONFIG-40)', () => {
  it('200: may lead anywhere', async () => {
    const mails = await MailServer.start();
    const provider = await HandmadeProvider.start(() => Date.now());
    const app = await TestApp.start({
      OUTBOUND_NETWORKS: '',
      SMTP_URL: mails.url,
      MAIL_FROM: 'no-reply@example.com',
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: 'latchkey',
      OIDC_CLIENT_SECRET: clientSecret,
    });
    try {
      const admin = await app.setUp();
      expect((await admin.post('/settings/smtp/test')).status).toBe(200);
      expect((await admin.post('/settings/oidc/test')).status).toBe(200);
    } finally {
      await app.close();
      await provider.stop();
      await mails.stop();
    }
  });
});
