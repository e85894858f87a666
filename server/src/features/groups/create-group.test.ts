import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

describe('POST /userGroups', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const create = (body: unknown, client = admin) => client.post('/userGroups', body);

  it('201: the whole group, without members (GROUP-1)', async () => {
    const { status, body } = await create({ name: '  Re\u0301search ', type: 'custom' });
    const { orgId } = (await admin.get(`/users/${admin.userId}`)).body;
    const at = new Date(app.clock.now()).toISOString();
    expect([status, body]).toEqual([
      201,
      {
        _id: expect.stringMatching(/^[a-f0-9]{24}$/),
        slug: 'usergroup-1004',
        name: 'Résearch',
        type: 'custom',
        orgId,
        users: [],
        isSystem: false,
        isDeleted: false,
        createdAt: at,
        updatedAt: at,
      },
    ]);
    expect((await admin.get(`/userGroups/${body._id}`)).body).toEqual(body);
    expect((await create({ name: 'Ordinary', type: 'standard' })).body).toMatchObject({
      type: 'standard',
      isSystem: false,
    });
  });

  it.each([
    ['no name', { type: 'custom' }, 'body.name'],
    ['an empty name', { name: ' ', type: 'custom' }, 'body.name'],
    ['a name of 256 characters', { name: 'x'.repeat(256), type: 'custom' }, 'body.name'],
    ['a name with a control character', { name: 'a\u0007b', type: 'custom' }, 'body.name'],
    ['a name that is no text', { name: ['x'], type: 'custom' }, 'body.name'],
    ['no type', { name: 'x' }, 'body.type'],
    ['the type admin', { name: 'x', type: 'admin' }, 'body.type'],
    ['the type everyone', { name: 'x', type: 'everyone' }, 'body.type'],
    ['a type in capitals', { name: 'x', type: 'Custom' }, 'body.type'],
  ])('400: %s (GROUP-2)', async (_, body, field) => {
    const response = await create(body);
    expect([response.status, response.body.error.details[0].field]).toEqual([400, field]);
  });

  it('409: a name that is taken, in any case and spelling, those of the default groups included (GROUP-3)', async () => {
    await create({ name: 'Straße Ä', type: 'custom' });
    for (const name of ['straße ä', 'STRASSE Ä', 'strasse A\u0308', 'Admin', 'EVERYONE', 'standard']) {
      const { status, body } = await create({ name, type: 'custom' });
      expect([name, status, body.error.code, body.message]).toEqual([
        name,
        409,
        'CONFLICT',
        'A group with this name exists already',
      ]);
    }
  });

  it('201: the name of a deleted group is free again', async () => {
    const { body } = await create({ name: 'Passing', type: 'custom' });
    await admin.delete(`/userGroups/${body._id}`);
    expect((await create({ name: 'passing', type: 'custom' })).status).toBe(201);
  });

  it('201 for one of 32 at once with one name, 409 for the others (GROUP-3, STORE-5)', async () => {
    const responses = await Promise.all(
      Array.from({ length: 32 }, (_, place) => create({ name: place % 2 ? 'Race' : 'RACE', type: 'custom' })),
    );
    expect(responses.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      201,
      ...Array.from({ length: 31 }, () => 409),
    ]);
  });

  it('what the service governs cannot be set', async () => {
    const evil = {
      users: [admin.userId],
      isSystem: true,
      isDeleted: true,
      _id: 'a'.repeat(24),
      slug: 'evil',
      orgId: 'b',
    };
    const { body } = await create({ ...evil, name: 'Governed', type: 'custom' });
    expect(body).toMatchObject({ users: [], isSystem: false, isDeleted: false });
    expect([body._id === evil._id, body.slug]).toEqual([false, expect.stringMatching(/^usergroup-\d+$/)]);
  });

  it('is in the audit log, and no event (EVENT-6)', async () => {
    const events = await app.events();
    const { body } = await create({ name: 'Recorded', type: 'custom' });
    const [row] = (await app.audit()).slice(-1);
    expect(row).toMatchObject({
      action: 'group.created',
      subject_id: body._id,
      actor_user_id: admin.userId,
      details: { name: 'Recorded', type: 'custom' },
    });
    expect(await app.events()).toEqual(events);
  });
});
