import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerClient } from '../../src/features/service-clients/public.ts';
import { recoverAdministrator } from '../../src/operator/recovery/public.ts';
import { callTool } from '../support/agents.ts';
import { Inviting } from '../support/inviting.ts';
import { secondConnection } from '../support/second-connection.ts';
import { registerService } from '../support/service-clients.ts';
import type { Client, Json } from '../support/test-app.ts';
import { registerWebhook } from '../support/webhooks.ts';

describe('an administrator who leaves', () => {
  let office: Inviting;
  let admin: Client;
  let adminGroup: string;
  let count = 0;

  beforeAll(async () => {
    office = await Inviting.start({ RATE_LIMIT: 'on' });
    admin = office.admin;
    adminGroup = (await admin.get('/userGroups?search=admin')).body.groups[0]._id;
  });
  afterAll(() => office.close());

  /** Another administrator, signed in. */
  async function another(): Promise<Client> {
    count += 1;
    const client = await office.app.member(admin, `leaver-${count}@example.com`, `Leaver ${count}`);
    await admin.post('/userGroups/add-users', { userIds: [client.userId], groupIds: [adminGroup] });
    return client;
  }
  const demote = (userIds: readonly string[], by: Client = admin) =>
    by.post('/userGroups/remove-users', { userIds, groupIds: [adminGroup] });
  const clientsOf = async (): Promise<Json[]> => (await admin.get('/service-clients')).body.clients;
  const webhooksOf = async (): Promise<Json[]> => (await admin.get('/webhooks')).body.webhooks;
  const nothing = { serviceClients: [], webhooks: [], settings: [] };
  /** Returns the notices to a user about a leaver, once there is a number of them. */
  async function notices(to: string, about: string, expected: number): Promise<readonly string[]> {
    const all = () => office.mail.mailsTo(to).flatMap(({ raw }) => (raw.includes(`(${about}`) ? [raw] : []));
    await expect.poll(() => all().length, { timeout: 10_000 }).toBe(expected);
    return all();
  }

  it('demoted: the answer names what they made, or hold the secret or address of, and nothing else (LEAVER-3, LEAVER-4)', async () => {
    const leaver = await another();
    const named = ['by session', 'by token', 'rotated'];
    await registerService(leaver, undefined, 'by session');
    await registerService(await leaver.token(), undefined, 'by token');
    const rotated = await registerService(admin, undefined, 'rotated');
    await registerService(admin, undefined, 'left alone');
    await leaver.post(`/service-clients/${rotated.clientId}/rotate`);
    await registerWebhook(leaver, 'https://made.example.com/secret-path');
    const moved = await registerWebhook(admin, 'https://admin.example.com/');
    await leaver.patch(`/webhooks/${moved.id}`, { url: 'https://moved.example.com/' });
    const signedAgain = await registerWebhook(admin, 'https://rotated.example.com/');
    await leaver.post(`/webhooks/${signedAgain.id}/rotate-secret`);
    const described = await registerWebhook(admin, 'https://described.example.com/');
    await leaver.patch(`/webhooks/${described.id}`, { description: 'x', url: 'https://described.example.com/' });
    await registerService(await another(), undefined, 'of another');
    const [clients, webhooks] = [await clientsOf(), await webhooksOf()];
    for (const one of [...clients, ...webhooks]) expect(one.creatorIsAdministrator).toBe(true);

    const { status, body } = await demote([leaver.userId]);
    expect(status).toBe(200);
    const isTheirs = (one: Json) => named.includes(one.name) || /made|moved|rotated/.test(one.url);
    expect(body.needsReview).toEqual({
      serviceClients: clients.filter(isTheirs).map(({ clientId, name, createdAt }) => ({ clientId, name, createdAt })),
      webhooks: webhooks.filter(isTheirs).map(({ id, url, createdAt }) => ({ id, url, createdAt })),
      settings: [],
    });
    expect([body.needsReview.serviceClients.length, body.needsReview.webhooks.length]).toEqual([3, 3]);
    for (const one of [...(await clientsOf()), ...(await webhooksOf())]) {
      expect([one, one.creatorIsAdministrator]).toEqual([one, !isTheirs(one)]);
    }
    for (const { id } of webhooks) await admin.delete(`/webhooks/${id}`);
    for (const { clientId } of clients) await admin.delete(`/service-clients/${clientId}`);
  });

  it('what the operator made is no one’s: null (LEAVER-5)', async () => {
    const { app } = office;
    await app.services.db.transaction((tx) =>
      registerClient(tx, app.services, {
        name: 'of the operator',
        scopes: ['USER_LOOKUP'],
        orgId: null,
        actor: null,
        origin: { requestId: 'test', network: 'local' },
      }),
    );
    expect(await clientsOf()).toMatchObject([{ createdBy: null, creatorIsAdministrator: null }]);
  });

  it('only the admin group matters, and only who was in it; nothing made is two empty lists (LEAVER-4)', async () => {
    const [leaver, member] = [await another(), await office.app.member(admin, 'member@example.com')];
    const { id } = await office.newGroup();
    await admin.post('/userGroups/add-users', { userIds: [leaver.userId], groupIds: [id] });
    await registerService(leaver, undefined, 'kept');
    const left = await admin.post('/userGroups/remove-users', { userIds: [leaver.userId], groupIds: [id] });
    expect(Object.keys(left.body)).toEqual(['message']);
    expect(Object.keys((await demote([member.userId])).body)).toEqual(['message']);
    const empty = await another();
    expect((await demote([empty.userId, member.userId])).body.needsReview).toEqual(nothing);
    const both = await another();
    const { needsReview } = (await demote([both.userId, leaver.userId])).body;
    expect(needsReview.serviceClients.map(({ name }: Json) => name)).toEqual(['kept']);
  });

  it('by a tool, and by oneself, too (LEAVER-4, MCP-9)', async () => {
    const [one, other] = [await another(), await another()];
    for (const leaver of [one, other]) await registerService(leaver, undefined, `of ${leaver.userId}`);
    const input = { userIds: [one.userId], groupIds: [adminGroup] };
    const { structuredContent } = await callTool(await admin.token(), 'remove_group_members', input);
    expect(structuredContent.needsReview.serviceClients).toMatchObject([{ name: `of ${one.userId}` }]);
    const { body } = await demote([other.userId], other);
    expect(body.needsReview.serviceClients).toMatchObject([{ name: `of ${other.userId}` }]);
  });

  it('deleted: the answer carries it again where something goes on, but not for a token without org:admin (LEAVER-4)', async () => {
    const narrow = await admin.token({ scopes: ['user:delete'] });
    const [one, other, none] = [await another(), await another(), await another()];
    for (const leaver of [one, other]) {
      await registerService(leaver, undefined, `of ${leaver.userId}`);
      await registerService(await leaver.token(), undefined, 'ends with the owner of its token');
    }
    await demote([one.userId, other.userId, none.userId]);
    const { status, body } = await admin.delete(`/users/${one.userId}`);
    expect([status, body.needsReview]).toEqual([
      200,
      { ...nothing, serviceClients: [expect.objectContaining({ name: `of ${one.userId}` })] },
    ]);
    const quiet = await narrow.delete(`/users/${other.userId}`);
    expect([quiet.status, Object.keys(quiet.body)]).toEqual([200, ['message']]);
    expect(Object.keys((await admin.delete(`/users/${none.userId}`)).body)).toEqual(['message']);
  });

  it('410: the links that they were shown end, pending administrators’ among them, and don’t come back (LEAVER-9)', async () => {
    const { app } = office;
    let invitees = 0;
    /** A link to the account of a new administrator, as the administrator who asked for it sees it. */
    async function shownTo(client: Client): Promise<string> {
      invitees += 1;
      const { _id } = (await admin.post('/users', { fullName: 'Pending', email: `pending-${invitees}@example.com` }))
        .body;
      await admin.post('/userGroups/add-users', { userIds: [_id], groupIds: [adminGroup] });
      return (await client.post(`/users/${_id}/invite-link`)).body.link.split('#token=')[1];
    }
    const [one, other, stays] = [await another(), await another(), await another()];
    const links = [await shownTo(one), await shownTo(other), await shownTo(stays)];
    const mailed = await office.invitee();
    const origin = { requestId: 'test', network: 'local' };
    const recovery = await recoverAdministrator(app.services, {
      email: `leaver-${count - 2}@example.com`,
      resetSignIn: false,
      origin,
    });
    const recovered = String(typeof recovery === 'string' ? null : recovery.link.split('#token=')[1]);
    const verdicts = () => Promise.all([...links, recovered, mailed.token].map((token) => office.verdict(token)));
    expect(await verdicts()).toEqual([400, 400, 400, 400, 400]);
    await demote([one.userId]);
    expect(await verdicts()).toEqual([410, 400, 400, 410, 400]);
    await admin.post('/userGroups/add-users', { userIds: [one.userId], groupIds: [adminGroup] });
    await demote([other.userId]);
    await admin.delete(`/users/${other.userId}`);
    await admin.post(`/users/${other.userId}/restore`);
    await admin.post('/userGroups/add-users', { userIds: [other.userId], groupIds: [adminGroup] });
    expect(await verdicts()).toEqual([410, 410, 400, 410, 400]);
    // By whatever other way the role went, such as a back-up of before.
    const store = secondConnection(app);
    store.prepare('DELETE FROM group_members WHERE user_id = ?').run(stays.userId);
    store.close();
    expect(await verdicts()).toEqual([410, 410, 410, 410, 400]);
  });

  it('the remaining administrators get a notice, without the address of a webhook, three a minute about one (LEAVER-6)', async () => {
    const [leaver, last] = [await another(), await another()];
    const [toLeaver, toLast] = [`leaver-${count - 1}@example.com`, `leaver-${count}@example.com`];
    await registerService(leaver, undefined, 'payroll');
    await registerWebhook(leaver, 'https://hook.example.com/secret-path');
    await demote([leaver.userId]);
    const [raw] = await notices('ada@example.com', toLeaver, 1);
    for (const part of ['payroll', 'hook.example.com']) expect(raw).toContain(part);
    expect(raw).not.toContain('secret-path');
    await notices(toLast, toLeaver, 1);
    await notices(toLeaver, toLeaver, 0);
    for (let turn = 2; turn <= 4; turn += 1) {
      await admin.post('/userGroups/add-users', { userIds: [leaver.userId], groupIds: [adminGroup] });
      await demote([leaver.userId]);
    }
    await admin.delete(`/users/${leaver.userId}`);
    await demote([last.userId]);
    await notices('ada@example.com', toLast, 1);
    await notices('ada@example.com', toLeaver, 3);
  });
});
