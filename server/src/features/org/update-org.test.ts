import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, organization, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const home = { addressLine1: '12 St James Square', city: 'London', country: 'United Kingdom', postCode: 'SW1Y 4JH' };
/** Calls PATCH or PUT, which do the same. */
const change = (client: Client, method: string, body?: unknown) => client.call(method, '/org', { body });

describe.each(['PATCH', 'PUT'])('%s /org (ORG-20, ORG-23)', (method) => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  const record = async (): Promise<Json> => (await admin.get('/org')).body;
  const told = async () => [(await app.events()).length, (await app.audit()).length];

  it('200: data holds _id, the fields that were given and updatedAt (ORG-21)', async () => {
    const before = await record();
    app.clock.advance(1_000);
    const given = {
      contactEmail: 'Office@Sub.Example.com',
      registeredName: '  Example Holding ',
      shortName: 'Ex',
      permanentAddress: { ...home, planet: 'Earth' },
    };
    const { status, body } = await change(admin, method, given);
    const updatedAt = new Date(app.clock.now()).toISOString();
    const changed = {
      contactEmail: 'office@sub.example.com',
      registeredName: 'Example Holding',
      shortName: 'Ex',
      permanentAddress: home,
    };
    expect(status).toBe(200);
    expect(body).toEqual({ message: expect.any(String), data: { _id: before._id, ...changed, updatedAt } });
    expect(await record()).toEqual({ ...before, ...changed, domain: 'sub.example.com', updatedAt });
  });

  it.each([
    ['contactEmail', 'desk@example.org'],
    ['registeredName', 'Example Ltd'],
    ['shortName', 'Example'],
    ['permanentAddress', { city: 'Paris' }],
  ])('200: %s alone is changed alone, and stands alone in data (ORG-21)', async (field, value) => {
    const before = await record();
    app.clock.advance(1_000);
    const { status, body } = await change(admin, method, { [field]: value });
    const updatedAt = new Date(app.clock.now()).toISOString();
    expect([status, body.data]).toEqual([200, { _id: before._id, [field]: value, updatedAt }]);
    const domain = field === 'contactEmail' ? 'example.org' : before.domain;
    expect(await record()).toEqual({ ...before, [field]: value, domain, updatedAt });
  });

  it('200: an event with the new registeredName and an audit row come with the change (ORG-22, EVENT-4, STORE-1)', async () => {
    const [events = 0] = await told();
    await change(admin, method, { registeredName: 'Renamed Ltd', shortName: 'Renamed' });
    const { _id: orgId } = await record();
    const [event, ...more] = (await app.events()).slice(events);
    expect([event.event_type, event.org_id, more]).toEqual(['orgUpdated', orgId, []]);
    expect(event.payload).toEqual({ orgId, registeredName: 'Renamed Ltd' });
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'org.updated',
      org_id: orgId,
      actor_user_id: admin.userId,
      subject_id: orgId,
      details: { fields: ['registeredName', 'shortName'] },
    });
  });

  it('200: a field given with the value that it has is a change all the same (ORG-22)', async () => {
    const [events = 0] = await told();
    const { registeredName } = await record();
    expect((await change(admin, method, { registeredName })).status).toBe(200);
    expect((await app.events()).length).toBe(events + 1);
  });

  it.each([
    ['no body', undefined],
    ['an empty body', {}],
    ['unknown keys alone', { phoneNumber: '+442079460000', name: 'x' }],
    ['governed keys alone', { slug: 'org-7', isDeleted: true, domain: 'evil.example', updatedAt: 0, _id: 'a' }],
  ])('200: with %s nothing changes, and no one is told (ORG-22, ORG-24)', async (_, body) => {
    const before = await record();
    const toldBefore = await told();
    app.clock.advance(1_000);
    const response = await change(admin, method, body);
    expect([response.status, response.body.data]).toEqual([200, { _id: before._id, updatedAt: before.updatedAt }]);
    expect(await record()).toEqual(before);
    expect(await told()).toEqual(toldBefore);
  });

  it('200: what the service governs is not set, beside something that is (ORG-24)', async () => {
    const before = await record();
    const governed = {
      _id: 'a'.repeat(24),
      id: 'a'.repeat(24),
      orgId: 'a'.repeat(24),
      slug: 'org-7',
      domain: 'evil.example',
      accountType: 'individual',
      phoneNumber: '+442079460000',
      onBoardingStatus: 'configured',
      isDeleted: true,
      deletedByUser: 'a'.repeat(24),
      createdAt: '1970-01-01T00:00:00.000Z',
      updatedAt: '1970-01-01T00:00:00.000Z',
    };
    const { body } = await change(admin, method, { ...governed, shortName: 'Kept' });
    expect(body.data).toEqual({ _id: before._id, shortName: 'Kept', updatedAt: body.data.updatedAt });
    expect(await record()).toEqual({ ...before, shortName: 'Kept', updatedAt: body.data.updatedAt });
  });

  it.each([
    ['shortName', null],
    ['shortName', ''],
    ['shortName', '  '],
    ['permanentAddress', null],
    ['permanentAddress', ''],
  ])('200: %s is cleared by %j (ORG-19, ORG-20)', async (field, nothing) => {
    await change(admin, method, { shortName: 'Short', permanentAddress: home });
    const { body } = await change(admin, method, { [field]: nothing });
    expect(body.data[field]).toBeNull();
    const after = await record();
    // A name to show there always is.
    expect(after[field]).toBe(field === 'shortName' ? after.registeredName : undefined);
  });

  it('200: an address is replaced as a whole', async () => {
    await change(admin, method, { permanentAddress: home });
    await change(admin, method, { permanentAddress: { city: 'Rome' } });
    expect((await record()).permanentAddress).toEqual({ city: 'Rome' });
  });

  it("200: the administrator's own address stays, and signs in as before", async () => {
    await change(admin, method, { contactEmail: 'press@example.net' });
    expect((await admin.get(`/users/${admin.userId}`)).body.email).toBe(organization.contactEmail);
    expect((await app.signInTokens(organization.contactEmail)).status).toBe(200);
    expect((await app.signInTokens('press@example.net')).status).toBe(401);
  });

  it.each([
    ['contactEmail', null],
    ['contactEmail', ''],
    ['contactEmail', 'nobody'],
    ['contactEmail', 'a@b@example.com'],
    ['contactEmail', `${'x'.repeat(250)}@example.com`],
    ['registeredName', null],
    ['registeredName', ''],
    ['registeredName', ' '],
    ['registeredName', 7],
    ['registeredName', 'x'.repeat(256)],
    ['shortName', 'a\u202eb'],
    ['shortName', ['x']],
    ['permanentAddress', 'London'],
    ['permanentAddress', [home]],
    ['permanentAddress.city', { city: 7 }],
  ])('400: %s %j, and nothing of the rest is changed (ORG-4, ERR-10)', async (field, value) => {
    const before = await record();
    const toldBefore = await told();
    const name = field.split('.')[0] ?? '';
    const given = { shortName: 'Other', registeredName: 'Other Ltd', [name]: value };
    const { status, body } = await change(admin, method, given);
    expect([status, body.error.code, body.error.details[0].field]).toEqual([400, 'VALIDATION_ERROR', `body.${field}`]);
    expect(await record()).toEqual(before);
    expect(await told()).toEqual(toldBefore);
  });

  it.each(['null', '[]', '"x"', '7', 'true'])('400: the body is %s', async (raw) => {
    const response = await admin.call(method, '/org', { raw, headers: { 'content-type': 'application/json' } });
    expect([response.status, response.body.error.details[0].field]).toEqual([400, 'body']);
  });

  it('401, 403: no one, a member, a token without org:write (ERR-16, SCOPE-16)', async () => {
    const before = await record();
    const input = { shortName: 'Mine' };
    const other = await admin.token({ scopes: ['org:read', 'org:admin'] });
    const membersToken = await member.token();
    const tries: TestResponse[] = [];
    for (const client of [app.anonymous, member, membersToken, other]) tries.push(await change(client, method, input));
    expect(tries.map(({ status, body }) => [status, body.error.code])).toEqual([
      [401, 'UNAUTHORIZED'],
      [403, 'ADMIN_REQUIRED'],
      [403, 'ADMIN_REQUIRED'],
      [403, 'INSUFFICIENT_SCOPE'],
    ]);
    expect(await record()).toEqual(before);
    const writer = await admin.token({ scopes: ['org:write'] });
    expect((await change(writer, method, input)).status).toBe(200);
    expect((await app.audit()).at(-1)).toMatchObject({ actor_token_id: writer.tokenId });
  });

  it('200: many changes of different fields at once lose nothing', async () => {
    const inputs = [{ shortName: 'A' }, { registeredName: 'B Ltd' }, { permanentAddress: { city: 'C' } }];
    const responses = await Promise.all(inputs.map((input) => change(admin, method, input)));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await record()).toMatchObject(Object.assign({}, ...inputs));
  });
});

describe('PATCH /org of an individual', () => {
  it('200: registeredName can be cleared, and the event leaves it out (ORG-4, ORG-22, EVENT-4)', async () => {
    const app = await TestApp.start();
    await app.anonymous.post('/org', { ...organization, accountType: 'individual', shortName: 'Ada' });
    const admin = await app.signIn(organization.contactEmail);
    const { status, body } = await admin.patch('/org', { registeredName: null });
    expect([status, body.data.registeredName]).toEqual([200, null]);
    const after = (await admin.get('/org')).body;
    expect([after.registeredName, after.shortName]).toEqual([undefined, 'Ada']);
    expect((await app.events()).at(-1)).toMatchObject({ event_type: 'orgUpdated', payload: { orgId: after._id } });
    expect(Object.keys((await app.events()).at(-1).payload)).toEqual(['orgId']);
    // Without any name there is none to show.
    await admin.patch('/org', { shortName: '' });
    expect(Object.keys((await admin.get('/org')).body)).not.toContain('shortName');
    await app.close();
  });
});
