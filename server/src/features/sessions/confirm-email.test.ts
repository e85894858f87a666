import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tokenIn } from '../../../test/mail-server.ts';
import { SignInDesk } from '../../../test/sign-in-desk.ts';
import type { Client } from '../../../test/test-app.ts';

const path = '/userAccount/email/confirm';
const confirmed = { status: 200, body: { message: 'E-mail address confirmed' } };

describe('POST /userAccount/email/confirm', () => {
  let desk: SignInDesk;
  let people = 0;
  beforeAll(async () => {
    desk = await SignInDesk.start();
  });
  afterAll(() => desk.close());

  /** Creates somebody whose address a token changed from `before` to `after`. */
  async function moved(): Promise<{ before: string; after: string; client: Client; token: Client }> {
    people += 1;
    const [before, after] = [`before-${people}@example.com`, `after-${people}@example.com`];
    const client = await desk.app.member(desk.admin, before);
    const token = await client.token();
    expect((await token.patch(`/users/${client.userId}/email`, { email: after })).status).toBe(200);
    await desk.settled();
    desk.mail.clear();
    return { before, after, client, token };
  }

  /** Asks for a link; answers who got it, and its token. */
  async function recover(email: string): Promise<[string, string] | null> {
    await desk.settled();
    desk.mail.clear();
    await desk.app.nobody.post('/userAccount/password/forgot', { email });
    await desk.settled();
    const [letter] = desk.mail.mails;
    return letter ? [letter.to.join(), tokenIn(letter)] : null;
  }

  const isPending = async (userId: string) => {
    const rows = desk.app.services.db.read.selectFrom('users').where('id', '=', userId).select('recovery_email');
    return (await rows.executeTakeFirstOrThrow()).recovery_email !== null;
  };

  it('200: links go to the earlier address until then, by either name, and to the new one afterwards (AUTH-49, AUTH-50)', async () => {
    const { before, after, client } = await moved();
    for (const named of [before, after]) expect((await recover(named))?.[0]).toBe(before);
    expect(await client.post(path)).toMatchObject(confirmed);
    expect(await recover(before)).toBeNull();
    expect((await recover(after))?.[0]).toBe(after);
  });

  it('200: what went to the earlier address works no longer: neither link nor code (AUTH-50, LINK-3)', async () => {
    const { before, after, client } = await moved();
    const [, token] = (await recover(after)) ?? ['', ''];
    const code = await desk.codeFor(after, before);
    expect(await client.post(path)).toMatchObject(confirmed);
    const reset = desk.app.with(token).post('/userAccount/password/reset/token', { password: 'Another-Horse-8' });
    expect(await reset).toMatchObject({ status: 410, body: { error: { code: 'GONE' } } });
    expect((await desk.signIn(after, 'otp', code)).status).toBe(401);
    // Sessions go on, and the new address gets a code that works.
    expect((await client.get('/org')).status).toBe(200);
    expect((await desk.signIn(after, 'otp', await desk.codeFor(after))).status).toBe(200);
  });

  it('200: by an administrator for somebody else, with a row of the audit log (AUTH-50, AUDIT-1)', async () => {
    const { after, client } = await moved();
    const rows = (await desk.app.audit()).length;
    expect(await desk.admin.post(path, { userId: client.userId.toUpperCase() })).toMatchObject(confirmed);
    expect(await isPending(client.userId)).toBe(false);
    expect((await desk.app.audit()).slice(rows)).toMatchObject([
      {
        action: 'user.email-confirmed',
        actor_user_id: desk.admin.userId,
        subject_id: client.userId,
        details: { email: after },
      },
    ]);
  });

  it('200: an address that a session set needs no confirmation, and confirming it is nothing (AUTH-49, AUTH-50)', async () => {
    const { client } = await moved();
    await client.patch(`/users/${client.userId}/email`, { email: `own-${people}@example.com` });
    expect(await isPending(client.userId)).toBe(false);
    const [, token] = (await recover(`own-${people}@example.com`)) ?? ['', ''];
    const rows = (await desk.app.audit()).length;
    for (const body of [undefined, {}, { userId: client.userId }]) {
      expect(await client.post(path, body)).toMatchObject(confirmed);
    }
    expect(await desk.app.audit()).toHaveLength(rows);
    const reset = desk.app.with(token).post('/userAccount/password/reset/token', { password: 'Another-Horse-8' });
    expect((await reset).status).toBe(200);
  });

  it('403: a member for somebody else, who is here or not (AUTH-50)', async () => {
    const [one, other] = [await moved(), await moved()];
    for (const userId of [other.client.userId, '0'.repeat(24)]) {
      expect(await one.client.post(path, { userId })).toMatchObject({ status: 403 });
    }
    expect(await isPending(other.client.userId)).toBe(true);
  });

  it('403: the personal access token that set it, and any other (AUTH-32, AUTH-50)', async () => {
    const { client, token } = await moved();
    for (const each of [token, await desk.admin.token()]) {
      const answer = await each.post(path, { userId: client.userId });
      expect(answer).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } });
    }
    expect(await isPending(client.userId)).toBe(true);
  });

  it('404: an administrator for nobody, or for somebody deleted (ERR-17)', async () => {
    const { client } = await moved();
    await desk.admin.delete(`/users/${client.userId}`);
    for (const userId of [client.userId, '0'.repeat(24)]) {
      expect(await desk.admin.post(path, { userId })).toMatchObject({
        status: 404,
        body: { error: { code: 'NOT_FOUND' } },
      });
    }
  });

  it('400: an id that is none (ERR-10)', async () => {
    for (const userId of ['x', 7, null, ['0'.repeat(24)]]) {
      expect((await desk.admin.post(path, { userId })).status, JSON.stringify(userId)).toBe(400);
    }
  });

  it('401: nobody (AUTH-19)', async () => {
    expect((await desk.app.nobody.post(path)).status).toBe(401);
  });
});
