import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MailServer, tokenIn } from './mail-server.ts';
import { mailedSecrets } from './mailed-secrets.ts';
import { type Client, TestApp } from './test-app.ts';

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
    await app.nobody.post('/userAccount/password/forgot', { email });
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
});
