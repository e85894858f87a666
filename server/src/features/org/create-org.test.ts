import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { organization, TestApp } from '../../../test/support/test-app.ts';

const { registeredName: _, ...unnamed } = organization;

describe('POST /org refuses', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  async function refusedFields(body: unknown): Promise<string[]> {
    const response = await app.anonymous.post('/org', body);
    expect(response).toMatchObject({ status: 400, body: { error: { code: 'VALIDATION_ERROR' } } });
    return response.body.error.details.map(({ field }: { field: string }) => field);
  }

  const long = 'x'.repeat(256);
  const wrong = {
    'accountType (ORG-2)': [undefined, null, '', 'company', 'Business', 7, ['business']],
    'contactEmail (ORG-3)': [
      undefined,
      null,
      '',
      'ada',
      'ada@host',
      '@example.com',
      'a b@example.com',
      7,
      { $ne: null },
    ],
    'adminFullName (ORG-5)': [undefined, null, '', '   ', long, 7, 'a\u0007b', '\u202egnp', '\ud83d'],
    'shortName (ORG-7)': [7, false, ['x'], long, 'a\nb'],
    'phoneNumber (ORG-7)': [7, {}, long],
    'permanentAddress (ORG-7)': ['1 High Street', [], 7],
    'sendEmail (ORG-7)': ['true', 1, null],
    'registeredName (ORG-4)': [undefined, null, '', '   ', 7, long],
    'password (ORG-6, PASSWORD-1)': [
      undefined,
      null,
      '',
      12_345_678,
      'Aa1!aaa',
      'aaaaaa1!',
      'AAAAAA1!',
      'Aaaaaaa!',
      'Aaaaaaa1',
    ],
    'password (PASSWORD-2)': ['Aaaaaa1 ', 'Aaaaaa1\u00a0', 'Aaaaaa1é', 'Aaaaaa1\u200b'],
    'password (PASSWORD-20)': [
      'Password1!',
      'Welcome1!',
      'Summer2026!',
      '1Qaz@wsx',
      'Lovelace-Ada-1',
      'Latchkey-2026!',
    ],
    'password (PASSWORD-3)': [`Aa1!${'x'.repeat(1_021)}`, `Aa1!${'é'.repeat(511)}`],
  };
  for (const [name, values] of Object.entries(wrong)) {
    const [field = ''] = name.split(' ');
    it(`400: a wrong ${name}`, async () => {
      for (const value of values) {
        const fields = await refusedFields({ ...organization, [field]: value });
        // What no JSON text of a body may hold is refused for the body as a whole, by the same path.
        expect([...new Set(fields)], JSON.stringify(value)).toEqual([`body.${field}`]);
      }
    });
  }

  it('400: a field of an address that is no text (ORG-8)', async () => {
    for (const key of ['addressLine1', 'city', 'state', 'country', 'postCode']) {
      for (const value of [7, {}, ['x'], long]) {
        const fields = await refusedFields({ ...organization, permanentAddress: { [key]: value } });
        expect(fields).toEqual([`body.permanentAddress.${key}`]);
      }
    }
  });

  it('400: everything that is wrong is told at once (ERR-3)', async () => {
    expect((await refusedFields({})).sort()).toEqual(
      ['body.accountType', 'body.adminFullName', 'body.contactEmail', 'body.password'].sort(),
    );
  });

  it.each([[undefined], [null], [[]], ['text'], [7]])('400: a body that is no object: %j', async (body) => {
    const { status } = await app.anonymous.post('/org', body);
    expect(status).toBe(400);
  });

  it('400: a NUL in the password, without cutting it off there (PASSWORD-4, HTTP-13)', async () => {
    expect(await refusedFields({ ...organization, password: 'Aaaaaa1!\0rest' })).toEqual(['body.password']);
  });

  it('never shows the password in the refusal (PASSWORD-5)', async () => {
    const { text } = await app.anonymous.post('/org', { ...unnamed, password: 'Visible-Secret-77' });
    expect(text).not.toContain('Visible-Secret');
  });

  it('and has stored nothing of all that (ORG-11)', async () => {
    expect((await app.anonymous.get('/org/exists')).body).toEqual({ exists: false });
    expect(await app.events()).toEqual([]);
    expect(await app.audit()).toEqual([]);
  });
});

describe('POST /org accepts', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await TestApp.start();
  });
  afterEach(() => app.close());

  it('200: the fewest fields, for an individual account (ORG-1, ORG-4, ORG-18)', async () => {
    const { status, body } = await app.anonymous.post('/org', { ...unnamed, accountType: 'individual' });
    expect(status).toBe(200);
    expect(body).toEqual({
      _id: expect.stringMatching(/^[a-f0-9]{24}$/),
      slug: 'org-1001',
      domain: 'example.com',
      contactEmail: 'ada@example.com',
      accountType: 'individual',
      onBoardingStatus: 'notConfigured',
      isDeleted: false,
      createdAt: '2026-11-27T20:17:00.123Z',
      updatedAt: '2026-11-27T20:17:00.123Z',
    });
    const [orgCreated] = await app.events();
    expect(orgCreated.payload).toEqual({ orgId: body._id, accountType: 'individual' });
  });

  it('200: every field, unknown and governed ones ignored (ORG-7, ORG-8, ORG-19)', async () => {
    const address = { addressLine1: '1 High Street', city: 'Zürich', state: 'ZH', country: 'CH', postCode: '8001' };
    const { status, body } = await app.anonymous.post('/org', {
      ...organization,
      registeredName: '  Example Ltd  ',
      shortName: 'Ex',
      phoneNumber: '+44 20 7946 0000',
      permanentAddress: { ...address, planet: 'Earth' },
      sendEmail: false,
      _id: '0'.repeat(24),
      slug: 'org-1',
      domain: 'evil.example',
      isDeleted: true,
      onBoardingStatus: 'configured',
      createdAt: '2000-01-01T00:00:00.000Z',
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ registeredName: 'Example Ltd', shortName: 'Ex', phoneNumber: '+44 20 7946 0000' });
    expect(body).toMatchObject({ slug: 'org-1001', domain: 'example.com', isDeleted: false });
    expect(body).toMatchObject({ onBoardingStatus: 'notConfigured', createdAt: '2026-11-27T20:17:00.123Z' });
    expect(body.permanentAddress).toEqual(address);
    expect(body._id).not.toBe('0'.repeat(24));
  });

  it('200: limits that are just kept, with characters that take four bytes (ORG-5, PASSWORD-3)', async () => {
    const name = '🏠'.repeat(255);
    const password = `Marble-Kettle-7${'x'.repeat(1_009)}`;
    const { status, body } = await app.anonymous.post('/org', {
      ...organization,
      password,
      adminFullName: name,
      registeredName: name,
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ registeredName: name, shortName: name });
    expect((await app.signInTokens(organization.contactEmail, password)).status).toBe(200);
  });

  it('200: a password of 8 characters, the letters of any script (PASSWORD-1, PASSWORD-2)', async () => {
    const password = 'Жгщбюц1№';
    expect((await app.anonymous.post('/org', { ...organization, password })).status).toBe(200);
    expect((await app.signInTokens(organization.contactEmail, password)).status).toBe(200);
  });

  it("200: an address of one spelling only, which is the administrator's and gives the domain (ORG-3)", async () => {
    const { body } = await app.anonymous.post('/org', { ...organization, contactEmail: '  ADA@Bücher.Example ' });
    expect(body).toMatchObject({ contactEmail: 'ada@xn--bcher-kva.example', domain: 'xn--bcher-kva.example' });
    const admin = await app.signIn('ada@xn--bcher-kva.example');
    expect((await admin.get(`/users/${admin.userId}`)).body.email).toBe('ada@xn--bcher-kva.example');
    expect((await app.signInTokens('Ada@BÜCHER.example')).status).toBe(200);
  });
});
