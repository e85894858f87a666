import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Inviting } from '../support/inviting.ts';
import type { Client } from '../support/test-app.ts';

const oidc = { issuer: 'https://id.example.com', clientId: 'latchkey', allowedDomains: ['example.com'] };
const smtp = { host: 'smtp.example.com', username: 'mailer', from: 'no-reply@example.com' };

describe.each([
  ['/settings/oidc', 'single sign-on', { settings: { ...oidc, clientSecret: 'first-secret' }, kept: oidc }],
  ['/settings/smtp', 'mail', { settings: { ...smtp, password: 'first-secret' }, kept: smtp }],
] as const)('%s of an administrator who leaves', (path, named, { settings, kept }) => {
  let office: Inviting;
  let admin: Client;
  let adminGroup: string;
  let count = 0;
  const name = path.slice('/settings/'.length);

  beforeAll(async () => {
    office = await Inviting.start({ RATE_LIMIT: 'on' });
    admin = office.admin;
    adminGroup = (await admin.get('/userGroups?search=admin')).body.groups[0]._id;
  });
  afterAll(() => office.close());

  async function another(): Promise<Client> {
    count += 1;
    const client = await office.app.member(admin, `leaver-${count}@example.com`, `Leaver ${count}`);
    await admin.post('/userGroups/add-users', { userIds: [client.userId], groupIds: [adminGroup] });
    return client;
  }
  const demote = async ({ userId }: Client) =>
    (await admin.post('/userGroups/remove-users', { userIds: [userId], groupIds: [adminGroup] })).body.needsReview
      .settings;
  const listed = [{ name, updatedAt: expect.any(String) }];
  const shown = async () => {
    const { updatedBy, confirmedBy, needsReview } = (await admin.get(path)).body;
    return { updatedBy, confirmedBy, needsReview };
  };

  it('demoted and deleted: it is listed, the notice names it, and GET shows it until another one changes it (LEAVER-10)', async () => {
    const leaver = await another();
    expect((await admin.get(path)).body).toMatchObject({ updatedBy: null, updatedAt: null, needsReview: false });
    const { status, body } = await leaver.put(path, settings);
    expect([status, body.updatedBy, body.confirmedBy, body.needsReview]).toEqual([200, leaver.userId, null, false]);
    expect(await demote(leaver)).toEqual(listed);
    expect(await shown()).toEqual({ updatedBy: leaver.userId, confirmedBy: null, needsReview: true });
    const about = () => office.mail.mailsTo('ada@example.com').filter(({ raw }) => raw.includes(`leaver-${count}@`));
    await expect.poll(() => about().length, { timeout: 10_000 }).toBe(1);
    expect(about()[0]?.text.replaceAll('\n', ' ')).toContain(`what is secret in them may be known: ${named}`);
    const deletion = await admin.delete(`/users/${leaver.userId}`);
    expect(deletion.body.needsReview).toEqual({ serviceClients: [], webhooks: [], settings: listed });
    await admin.put(path, kept);
    expect(await shown()).toEqual({ updatedBy: admin.userId, confirmedBy: admin.userId, needsReview: false });
  });

  it('the secret counts as well as the last change, and who confirmed it comes before both (LEAVER-10)', async () => {
    const [one, other] = [await another(), await another()];
    await one.put(path, settings);
    await admin.put(path, kept);
    expect(await demote(one)).toEqual(listed);
    expect(await shown()).toEqual({ updatedBy: admin.userId, confirmedBy: null, needsReview: true });
    const { status, body } = await other.post(`${path}/confirm`);
    expect([status, body.confirmedBy, body.needsReview]).toEqual([200, other.userId, false]);
    expect((await office.app.audit()).at(-1)).toMatchObject({ actor_user_id: other.userId });
    expect((await admin.delete(`/users/${one.userId}`)).body.needsReview).toBeUndefined();
    expect(await demote(other)).toEqual(listed);
    expect(await shown()).toMatchObject({ confirmedBy: other.userId, needsReview: true });
    await admin.put(path, settings);
    expect(await shown()).toEqual({ updatedBy: admin.userId, confirmedBy: null, needsReview: false });
  });

  it('404, 403: there has to be one to confirm, and it takes an administrator in a session (LEAVER-10)', async () => {
    await admin.put(path, settings);
    const member = await office.app.member(admin, 'member@example.com');
    expect((await member.post(`${path}/confirm`)).status).toBe(403);
    expect((await (await admin.token()).post(`${path}/confirm`)).status).toBe(403);
    await admin.delete(path);
    expect((await admin.post(`${path}/confirm`)).status).toBe(404);
  });
});

describe('sign-in steps of an administrator who leaves', () => {
  it('demoted or deleted: they are listed, and named by the notice, until another one sets them (LEAVER-10)', async () => {
    const office = await Inviting.start({ RATE_LIMIT: 'on' });
    try {
      const { admin } = office;
      const groupIds = [(await admin.get('/userGroups?search=admin')).body.groups[0]._id];
      const leaver = await office.app.member(admin, 'leaver@example.com', 'Leaver');
      const change = async (how: 'add' | 'remove') =>
        (await admin.post(`/userGroups/${how}-users`, { userIds: [leaver.userId], groupIds })).body.needsReview
          ?.settings;
      const set = (client: Client) =>
        client.post('/orgAuthConfig/updateAuthMethod', {
          authMethod: [{ order: 1, allowedMethods: [{ type: 'password' }, { type: 'otp' }] }],
        });
      await change('add');
      expect(await change('remove')).toEqual([]);
      await change('add');
      expect((await set(leaver)).status).toBe(200);
      const listed = [{ name: 'signInSteps', updatedAt: expect.any(String) }];
      expect(await change('remove')).toEqual(listed);
      const isNotice = ({ text }: { text: string }) =>
        text.replaceAll('\n', ' ').includes('may be known: sign-in steps');
      await expect.poll(() => office.mail.mailsTo('ada@example.com').some(isNotice), { timeout: 10_000 }).toBe(true);
      await change('add');
      expect((await set(admin)).status).toBe(200);
      expect(await change('remove')).toEqual([]);
    } finally {
      await office.close();
    }
  });
});
