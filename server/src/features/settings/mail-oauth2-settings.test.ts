import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MailServer } from '../../../test/support/mail-server.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { TokenEndpoint } from '../../../test/support/token-endpoint.ts';

const path = '/settings/smtp';
const secrets = { clientSecret: 'Client-Secret-4711', refreshToken: 'Refresh-Token-4711' };

describe('mail settings that sign in by OAuth 2.0 (FIT-25)', () => {
  let app: TestApp;
  let admin: Client;
  let endpoint: TokenEndpoint;
  let server: MailServer;

  beforeAll(async () => {
    app = await TestApp.start();
    for (const secret of Object.values(secrets)) app.keepSecret(secret);
    admin = await app.setUp();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    endpoint = await TokenEndpoint.start();
    server = await MailServer.start({ accessTokens: endpoint.accessTokens });
  });
  afterEach(() => Promise.all([endpoint.stop(), server.stop()]));

  const oauth2 = (given = {}) => ({
    user: 'mailer@example.com',
    clientId: 'latchkey',
    tokenUrl: endpoint.url,
    ...given,
  });
  const input = (given = {}) => ({
    host: '127.0.0.1',
    port: server.port,
    security: 'none',
    from: 'mailer@example.com',
    oauth2: { ...oauth2(), ...secrets },
    ...given,
  });

  it('200: are stored, shown without secrets, and proved by the test', async () => {
    const { status, body, text } = await admin.put(path, input());
    expect([status, body.username, body.hasPassword]).toEqual([200, null, false]);
    expect(body.oauth2).toEqual({ ...oauth2(), hasClientSecret: true, hasRefreshToken: true });
    expect(text).not.toMatch(/4711/);
    expect((await admin.post(`${path}/test`)).status).toBe(200);
    expect(server.mails[0]).toMatchObject({ username: 'mailer@example.com', sender: 'mailer@example.com' });
    const { body: log } = await admin.get('/audit?action=settings.mail-set&limit=1');
    expect(JSON.stringify(log)).toContain('oauth2RefreshToken');
    expect(JSON.stringify(log)).not.toMatch(/4711/);
  });

  it('200: an access token goes to another machine in clear text only where none is asked for (FIT-25)', async () => {
    for (const [host, security, stored] of [
      ['smtp.example.com', 'opportunistic', 'starttls'],
      ['smtp.example.com', 'none', 'none'],
      ['127.0.0.1', 'opportunistic', 'opportunistic'],
    ]) {
      const { status, body } = await admin.put(path, input({ host, security }));
      expect([status, body.security]).toEqual([200, stored]);
    }
  });

  it('502: the test has the words of the token endpoint, and what to do (FIT-26)', async () => {
    endpoint.refreshToken = 'another one';
    await admin.put(path, input());
    const { status, body } = await admin.post(`${path}/test`);
    expect([status, body.message]).toEqual([502, expect.stringContaining('invalid_grant: AADSTS70008')]);
    expect(body.message).toContain('authorize the mailbox again');
    expect(body.message).not.toMatch(/4711/);
  });

  it('keeps the secrets that are left out for the same mailbox, client, endpoint and server only', async () => {
    await admin.put(path, input());
    expect((await admin.put(path, input({ oauth2: oauth2(), from: 'Other <mailer@example.com>' }))).status).toBe(200);
    expect((await admin.post(`${path}/test`)).status).toBe(200);
    const changes = [
      { oauth2: oauth2({ user: 'eve@example.com' }) },
      { oauth2: oauth2({ clientId: 'other' }) },
      { oauth2: oauth2({ tokenUrl: 'http://127.0.0.1:1/token' }) },
      { oauth2: oauth2(), port: 2525 },
      { oauth2: oauth2(), host: 'smtp.example.com' },
      { oauth2: oauth2(), security: 'opportunistic' },
    ];
    for (const change of changes) {
      const { status, body } = await admin.put(path, input(change));
      expect([status, body.error.details[0].field]).toEqual([400, 'body.oauth2.clientSecret']);
    }
  });

  it.each([
    ['with a username', { username: 'mara', password: 'Secret-4711' }, 'body.oauth2'],
    ['with an endpoint over HTTP', { oauth2: { tokenUrl: 'http://login.example.com/token' } }, 'body.oauth2.tokenUrl'],
    [
      'with an endpoint that is not public (CONFIG-40)',
      { oauth2: { tokenUrl: 'https://10.0.0.7/token' } },
      'body.oauth2.tokenUrl',
    ],
    ['with an unknown key', { oauth2: { accessToken: 'x' } }, 'body.oauth2.accessToken'],
  ])('400: %s', async (_, given, field) => {
    const { oauth2: change, ...rest } = { oauth2: {}, ...given };
    const { status, body } = await admin.put(path, input({ ...rest, oauth2: { ...oauth2(), ...secrets, ...change } }));
    expect([status, body.error.details[0].field]).toEqual([400, field]);
  });
});
