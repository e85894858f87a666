import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Inviting } from '../../../test/support/inviting.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { requestMsMax } from './invitation.ts';
import { type Invitations, makeInvitations, requireInviting, sendInvitations } from './public.ts';

/** Adds users, and makes an invitation for each that is not sent yet. */
async function made(app: TestApp, admin: Client, emails: readonly string[]): Promise<Invitations> {
  const { services } = app;
  const { orgId } = (await admin.get(`/users/${admin.userId}`)).body;
  const users = await Promise.all(emails.map((email) => admin.post('/users', { fullName: 'New', email })));
  const invitees = users.map(({ body }) => ({
    id: body._id,
    email: body.email,
    recovery_email: null,
    isReturning: false,
  }));
  const by = { kind: 'session', sessionId: '', userId: admin.userId, orgId, isAdmin: true } as const;
  return services.db.transaction((tx) => makeInvitations(tx, services, { invitees, by }));
}

describe('sendInvitations', () => {
  let it1: Inviting;

  beforeAll(async () => {
    it1 = await Inviting.start();
  });
  afterAll(() => it1.close());

  const statusesOf = async (emails: readonly string[]) => {
    const list = await it1.list('?limit=100');
    return emails.map((email) => list.find((one: Json) => one.email === email)?.status);
  };

  it('notes each as sent, and answers nothing (INVITE-14)', async () => {
    const emails = it1.fresh(3);
    const invitations = await made(it1.app, it1.admin, emails);
    await sendInvitations(it1.app.services, invitations, performance.now());
    const rows = await it1.app.services.db.read.selectFrom('one_time_links').select('delivery').execute();
    expect(rows).toEqual(emails.map(() => ({ delivery: 'sent' })));
    expect(await statusesOf(emails)).toEqual(['pending', 'pending', 'pending']);
  });

  it('gives up what is left when the request has had its 60 seconds, however well the mail server does (INVITE-17)', async () => {
    const emails = it1.fresh(12);
    const invitations = await made(it1.app, it1.admin, emails);
    it1.mail.clear();
    const sending = sendInvitations(it1.app.services, invitations, performance.now() - requestMsMax);
    await expect(sending).rejects.toMatchObject({ errorName: 'inviteMailFailed', more: { failed: emails } });
    expect(it1.mail.mails.filter(({ to }) => emails.slice(4).includes(to[0] ?? ''))).toEqual([]);
    expect(await statusesOf(emails)).toEqual(emails.map(() => 'failed'));
  });
});

describe('mail settings that are removed between the commit and the mail', () => {
  it('make all of them fail, and the next call say which setting is missing (INVITE-14, INVITE-21, MAIL-9)', async () => {
    const app = await TestApp.start();
    const admin = await app.setUp();
    await expect(requireInviting(app.services)).rejects.toMatchObject({ errorName: 'mailNotConfigured' });
    const settings = { host: '127.0.0.1', port: 9, security: 'none', from: 'no-reply@example.com' };
    expect((await admin.put('/settings/smtp', settings)).status).toBe(200);
    await expect(requireInviting(app.services)).resolves.toBeUndefined();
    const emails = ['a@example.com', 'b@example.com'];
    const invitations = await made(app, admin, emails);
    expect((await admin.delete('/settings/smtp')).status).toBe(200);
    const sending = sendInvitations(app.services, invitations, performance.now());
    await expect(sending).rejects.toMatchObject({ errorName: 'inviteMailFailed', more: { failed: emails } });
    const { body } = await admin.get('/users/invitations?status=failed');
    expect(body.pagination.totalCount).toBe(2);
    expect((await admin.post('/users/bulk/invite', { emails })).body.message).toContain('SMTP_URL');
    await app.close();
  });
});
