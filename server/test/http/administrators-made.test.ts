import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTool } from '../support/agents.ts';
import { Inviting } from '../support/inviting.ts';
import type { Client, Json } from '../support/test-app.ts';

describe('making an administrator', () => {
  let office: Inviting;
  let member: Client;
  let token: Client;
  let adminGroup: string;

  beforeAll(async () => {
    office = await Inviting.start();
    member = await office.app.member(office.admin, 'grace@example.com');
    token = await office.admin.token();
    adminGroup = (await office.admin.get('/userGroups?search=admin')).body.groups[0]._id;
  });
  afterAll(() => office.close());

  const administrators = async () => (await office.admin.get(`/userGroups/${adminGroup}`)).body.users;
  /** Invites an administrator whose mail does not go out. */
  async function unreached(): Promise<{ readonly email: string; readonly userId: string }> {
    const [email = ''] = office.fresh(1);
    office.mail.faults = { refuse: () => 550 };
    await office.invite([email], [adminGroup]);
    office.mail.faults = {};
    return { email, userId: await office.idOf(email) };
  }
  const refused = {
    status: 403,
    body: { error: { code: 'FORBIDDEN', message: expect.stringMatching(/in a session/) } },
  };

  it.each<[string, (caller: Client) => Promise<Json>]>([
    ['add-users', (by) => by.post('/userGroups/add-users', { userIds: [member.userId], groupIds: [adminGroup] })],
    ['bulk invite', (by) => office.invite(office.fresh(1), [adminGroup], by)],
    [
      'bulk invite of a deleted user',
      async (by) => {
        const { email, userId } = await office.settled();
        await office.app.deleteUser(userId);
        return office.invite([email], [adminGroup], by);
      },
    ],
  ])('403: %s, with a personal access token of every scope; 200 in a session (LEAVER-1)', async (_, act) => {
    const before = await administrators();
    expect(await act(token)).toMatchObject(refused);
    expect(await administrators()).toEqual(before);
    expect((await act(office.admin)).status).toBe(200);
    expect((await administrators()).length).toBe(before.length + 1);
    await office.app.demote(member.userId);
  });

  it.each<[string, (userId: string) => Json]>([
    ['add_group_members', (userId) => ({ userIds: [userId], groupIds: [adminGroup] })],
    ['invite_users', () => ({ emails: office.fresh(1), groupIds: [adminGroup] })],
  ])('a tool result with isError: %s, with a token; done in a session (LEAVER-1, MCP-9)', async (tool, input) => {
    const before = await administrators();
    const result = await callTool(token, tool, input(member.userId));
    expect(result).toMatchObject({ isError: true });
    expect(JSON.stringify(result)).toContain('in a session');
    expect(await administrators()).toEqual(before);
    expect((await callTool(office.admin, tool, input(member.userId))).isError).toBeFalsy();
    expect((await administrators()).length).toBe(before.length + 1);
    await office.app.demote(member.userId);
  });

  it('403: a token has no link made to the account of an administrator who has not come yet (LEAVER-2)', async () => {
    const { email, userId } = await unreached();
    const asked = office.mail.asked.length;
    const [other = ''] = office.fresh(1);
    expect(await office.resend(userId, token)).toMatchObject(refused);
    expect(await office.invite([email], undefined, token)).toMatchObject(refused);
    expect(await office.invite([other, email], undefined, token)).toMatchObject(refused);
    expect((await token.post(`/users/${userId}/invite-link`)).status).toBe(403);
    expect(await office.idOf(other)).toBe('');
    expect(office.mail.asked.length).toBe(asked);
    expect((await office.invite([email])).status).toBe(200);
    expect((await office.resend(userId)).status).toBe(200);
  });

  it('200: a token restores a former administrator as a member, and resends to members (LEAVER-1)', async () => {
    const { userId } = await office.settled();
    await office.app.promote(userId);
    await office.admin.post('/userGroups/remove-users', { userIds: [userId], groupIds: [adminGroup] });
    await office.app.deleteUser(userId);
    expect((await token.post(`/users/${userId}/restore`)).status).toBe(200);
    expect(await office.groupsOf(userId)).toEqual(['everyone']);
    await office.app.deleteUser(userId);
    // A membership that the deletion did not end, as an import could bring.
    await office.app.promote(userId);
    expect(await token.post(`/users/${userId}/restore`)).toMatchObject(refused);
    expect((await office.admin.post(`/users/${userId}/restore`)).status).toBe(200);
    const invitee = await office.invitee();
    expect((await office.resend(invitee.userId, token)).status).toBe(200);
  });
});
