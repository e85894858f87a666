import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { outcomeOf } from '../support/browser.ts';
import { MailServer, tokenIn } from '../support/mail-server.ts';
import { mailedSecrets } from '../support/mailed-secrets.ts';
import { allowOidc, clientSecret, OidcServer, RunningClock } from '../support/oidc-server.ts';
import { issuedTo, registerService } from '../support/service-clients.ts';
import { codeIn } from '../support/sign-in-desk.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const email = 'ada@example.com';

describe('what a service has written, once it is closed (PASSWORD-6)', () => {
  let mails: MailServer;
  beforeAll(async () => {
    mails = await MailServer.start();
  });
  afterAll(() => mails.stop());

  /** A service, and the secrets of links that it gave: by mail, also where the mail was never taken, and shown. */
  async function withSecrets() {
    const app = await TestApp.start({ SMTP_URL: mails.url });
    const admin = await app.setUp();
    const secrets = [await mailed(app), await refused(admin), await shown(admin)];
    return { app, secrets };
  }
  async function mailed(app: TestApp): Promise<string> {
    mails.clear();
    await app.anonymous.post('/userAccount/password/forgot', { email });
    return tokenIn(await mails.mailTo(email));
  }
  /** The server quotes the whole mail, link and all, when it does not take it. */
  async function refused(admin: Client): Promise<string> {
    mails.faults = { refuseData: () => 554 };
    const { status, text } = await admin.post('/users/bulk/invite', { emails: ['guest@example.com'] });
    mails.faults = {};
    expect([status, text]).toEqual([502, expect.not.stringContaining('lkl_')]);
    return [...mailedSecrets].at(-1) ?? '';
  }
  async function shown(admin: Client): Promise<string> {
    const { _id } = (await admin.post('/users', { fullName: 'New', email: 'new@example.com' })).body;
    return (await admin.post(`/users/${_id}/invite-link`)).body.link.split('#token=')[1];
  }

  it('holds no secret of a link, in the store, the files and the log at its most talkative', async () => {
    const { app, secrets } = await withSecrets();
    for (const secret of secrets) expect(secret).toMatch(/^lkl_[\w-]{43}$/);
    expect(new Set(secrets).size).toBe(3);
    await app.close();
  });

  it.each([
    ['mailed', 0],
    ['in a mail that was refused', 1],
    ['shown', 2],
  ])('a secret that was %s would be found in a file and in the log: broken twins are caught', async (...[, place]) => {
    const inFile = await withSecrets();
    writeFileSync(join(inFile.app.dataDir, 'left-behind'), `x${inFile.secrets[place]}x`);
    await expect(inFile.app.close()).rejects.toThrow('a secret stands in clear in left-behind: [secret]');
    const inLog = await withSecrets();
    inLog.app.logLines.push(JSON.stringify({ msg: `mailed ${inLog.secrets[place]}` }));
    await expect(inLog.app.close()).rejects.toThrow('a secret stands in clear in the log: [secret]');
  });

  it('a secret that was told is looked for, too', async () => {
    const app = await TestApp.start();
    app.keepSecret('Told-Secret-4711');
    app.logLines.push('Told-Secret-4711');
    await expect(app.close()).rejects.toThrow('a secret stands in clear in the log');
  });

  /** A service, and what it gave of codes, tickets and scoped tokens. */
  async function withSignIns() {
    const provider = await OidcServer.start();
    const app = await TestApp.start({ SMTP_URL: mails.url, ...provider.environment }, new RunningClock());
    const admin = await app.setUp();
    await allowOidc(admin, [['password', 'otp', 'oidc']]);
    mails.clear();
    await app.anonymous.post('/userAccount/login/otp/generate', { email });
    const code = codeIn(await mails.mailTo(email));
    const { oidc: ticket = '' } = outcomeOf(await provider.walk(app, { sub: 'ada', email, email_verified: true }));
    const stored = { issuer: provider.issuer, clientId: 'latchkey', clientSecret };
    expect((await admin.put('/settings/oidc', stored)).status).toBe(200);
    const service = await registerService(admin);
    const { credential: token } = await issuedTo(app, service);
    await provider.stop();
    return { app, code, secrets: [ticket, clientSecret, service.clientSecret, token] };
  }
  function written({ dataDir, logLines }: TestApp): string {
    const files = readdirSync(dataDir).map((name) => readFileSync(join(dataDir, name), 'latin1'));
    return [...files, ...logLines].join('\n');
  }

  it('holds no one-time code, ticket, secret or token of a service, or secret of the provider (AUTH-51, AUDIT-6, SERVICE-12)', async () => {
    const { app, code, secrets } = await withSignIns();
    await app.stop();
    for (const secret of secrets) expect([secret.length > 20, written(app).includes(secret)]).toEqual([true, false]);
    // Six digits alone: within a hash or a time they may occur by chance.
    const alone = new RegExp(`(?<![\\w.-])${code}(?![\\w.-])`);
    expect(alone.test(written(app))).toBe(false);
    app.logLines.push(JSON.stringify({ msg: `mailed ${code}` }));
    expect(alone.test(written(app))).toBe(true);
    await app.close();
  });

  it.each([
    ['the ticket', 0],
    ['the secret of a service', 2],
    ['the token of a service', 3],
  ])('%s would be found: broken twins are caught', async (...[, place]) => {
    const { app, secrets } = await withSignIns();
    app.logLines.push(`x${secrets[place]}x`);
    await expect(app.close()).rejects.toThrow('a secret stands in clear in the log');
  });
});
