import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MailServer } from '../../../test/support/mail-server.ts';
import { chosen, gone, mailedToken, opens, resetWith, startWithMail } from '../../../test/support/recovery.ts';
import type { TestApp } from '../../../test/support/test-app.ts';

const path = '/userAccount/password/reset/token';

describe('POST /userAccount/password/reset/token, with limits', () => {
  let mails: MailServer;
  let app: TestApp;
  beforeEach(async () => {
    mails = await MailServer.start();
    app = await startWithMail(mails, { RATE_LIMIT: 'on', TRUST_PROXY: '127.0.0.1' });
    await app.setUp();
  });
  afterEach(async () => {
    await app.close();
    await mails.stop();
  });
  const ada = 'ada@example.com';

  it('200: anyone who tried wrong passwords before need not wait after a reset (AUTH-43, PASSWORD-9)', async () => {
    for (let count = 0; count < 5; count += 1) expect(await opens(app, ada, 'Wrong-Horse-7')).toBe(false);
    expect((await app.signInTokens(ada)).status).toBe(429);
    const link = await mailedToken({ app, mails }, ada);
    // An attempt that fails forgives nothing.
    expect((await resetWith(app, link, 'weak')).status).toBe(400);
    expect((await app.signInTokens(ada)).status).toBe(429);
    expect((await resetWith(app, link)).status).toBe(200);
    expect((await app.signInTokens(ada, chosen)).status).toBe(200);
  });

  it('200: a reset forgives a network nothing of what was tried on others (AUTH-43)', async () => {
    const tryOther = async (count: number) => {
      const statuses = new Set<number>();
      for (let place = 0; place < count; place += 1) {
        statuses.add((await app.signInTokens(`nobody-${place}@example.com`, 'Wrong-Horse-7')).status);
      }
      return [...statuses];
    };
    expect(await tryOther(48)).toEqual([401]);
    for (let count = 0; count < 3; count += 1) await resetWith(app, await mailedToken({ app, mails }, ada));
    // The fiftieth is the last free one.
    expect(await tryOther(2)).toEqual([401]);
    expect(await tryOther(1)).toEqual([429]);
  });

  it('429: invented links are bad credentials; a good one is never held back by that (AUTH-20, ERR-24)', async () => {
    const link = await mailedToken({ app, mails }, ada);
    const invented = app.with(`lkl_${'A'.repeat(43)}`);
    for (let count = 0; count < 300; count += 1) expect((await invented.post(path, {})).status).toBe(401);
    expect((await invented.post(path, {})).status).toBe(429);
    expect((await resetWith(app, link)).status).toBe(200);
    // One that has ended is no guess.
    expect(await resetWith(app, link)).toMatchObject(gone);
  });
});
