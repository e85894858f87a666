import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../support/test-app.ts';

const email = 'grace@xn--bcher-kva.example';

describe('search by the Unicode form of an address (FIT-80)', () => {
  let app: TestApp;
  let admin: Client;
  let lists: readonly (readonly [string, (body: Json) => readonly Json[], string])[];

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    const grace = await app.member(admin, 'grace@bücher.example');
    await app.member(admin, 'buecher@example.com', 'Other');
    await grace.token();
    const invited = (await admin.post('/users', { fullName: 'Invited', email: 'ivy@straße.example' })).body;
    await admin.post(`/users/${invited._id}/invite-link`);
    const group = (await admin.post('/userGroups', { name: 'Research', type: 'custom' })).body;
    await admin.post('/userGroups/add-users', { userIds: [grace.userId], groupIds: [group._id] });
    const members = [{ userId: grace.userId, role: 'READER' }];
    const { team } = (await admin.post('/teams', { name: 'Research', members })).body;
    lists = [
      ['/users', (body) => body.users, 'email'],
      ['/users/graph/list', (body) => body.users, 'email'],
      [`/teams/${team.id}/users`, (body) => body.members, 'userEmail'],
      [`/userGroups/${group._id}/users`, (body) => body.users, 'email'],
      ['/personal-access-tokens/admin', (body) => body.data, 'ownerEmail'],
    ];
  });
  afterAll(() => app.close());

  it.each(['bücher', 'GRACE@BÜCHER.example', '@bücher', 'e@b\u00fcch', 'xn--bcher', 'grace@xn--bcher-kva.example'])(
    '%s is found in every list',
    async (text) => {
      for (const [path, itemsOf, field] of lists) {
        const { status, body } = await admin.get(`${path}?search=${encodeURIComponent(text)}`);
        expect([path, status, itemsOf(body).map((item) => item[field])]).toEqual([path, 200, [email]]);
      }
    },
  );

  it('what is in no address is not found, and invitations are found too', async () => {
    for (const text of ['büchen', 'ada@bücher', 'bücher.example.com']) {
      for (const [path, itemsOf] of lists) {
        const { body } = await admin.get(`${path}?search=${encodeURIComponent(text)}`);
        expect([path, text, itemsOf(body)]).toEqual([path, text, []]);
      }
    }
    const { body } = await admin.get(`/users/invitations?search=${encodeURIComponent('ivy@straße')}`);
    expect(body.invitations.map(({ fullName }: Json) => fullName)).toEqual(['Invited']);
  });
});
