import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

describe('PUT /userGroups/:groupId', () => {
  let app: TestApp;
  let admin: Client;
  let groupId: string;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    groupId = (await admin.post('/userGroups', { name: 'Research', type: 'custom' })).body._id;
    await admin.post('/userGroups/add-users', { userIds: [admin.userId], groupIds: [groupId] });
  });
  afterAll(() => app.close());

  it('200: the group under its new name, members and all (GROUP-11)', async () => {
    app.clock.advance(1_000);
    const { status, body } = await admin.put(`/userGroups/${groupId.toUpperCase()}`, { name: ' Science ' });
    expect([status, body.name, body._id, body.users]).toEqual([200, 'Science', groupId, [admin.userId]]);
    expect(body.updatedAt > body.createdAt).toBe(true);
    expect((await admin.get(`/userGroups/${groupId}`)).body).toEqual(body);
    const [row] = (await app.audit()).slice(-1);
    expect(row).toMatchObject({
      action: 'group.renamed',
      subject_id: groupId,
      changes: { name: { before: 'Research', after: 'Science' } },
    });
  });

  it('200: its own name in another case; 409: the name of another one (GROUP-3)', async () => {
    expect((await admin.put(`/userGroups/${groupId}`, { name: 'SCIENCE' })).status).toBe(200);
    await admin.post('/userGroups', { name: 'Taken', type: 'custom' });
    for (const name of ['taken', 'Admin']) {
      expect((await admin.put(`/userGroups/${groupId}`, { name })).body.error.code).toBe('CONFLICT');
    }
    expect((await admin.get(`/userGroups/${groupId}`)).body.name).toBe('SCIENCE');
  });

  it('403: each of the three groups that came with the organization, and nothing changes (GROUP-11, GROUP-13)', async () => {
    const { groups } = (await admin.get('/userGroups')).body;
    const system = groups.filter(({ isSystem }: { isSystem: boolean }) => isSystem);
    expect(system.map(({ name }: { name: string }) => name)).toEqual(['admin', 'everyone', 'standard']);
    for (const { _id } of system) {
      const { status, body } = await admin.put(`/userGroups/${_id}`, { name: 'Mine' });
      expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
    }
    expect((await admin.get('/userGroups')).body.groups).toEqual(groups);
  });

  it('400: no name, or none that can be; 404: no such group, or a deleted one', async () => {
    for (const body of [{}, { name: '' }, { name: null }]) {
      expect((await admin.put(`/userGroups/${groupId}`, body)).status).toBe(400);
    }
    const gone = (await admin.post('/userGroups', { name: 'Gone', type: 'custom' })).body._id;
    await admin.delete(`/userGroups/${gone}`);
    for (const id of [gone, 'a'.repeat(24), admin.userId]) {
      expect((await admin.put(`/userGroups/${id}`, { name: 'New' })).status).toBe(404);
    }
  });
});
