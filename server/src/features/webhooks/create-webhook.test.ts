import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedRows } from '../../../test/support/second-connection.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { presentClock } from '../../../test/support/webhook-receiver.ts';
import { loopback, registerWebhook } from '../../../test/support/webhooks.ts';
import { toTimestamp } from '../../base/clock.ts';

const path = '/webhooks';
const url = 'https://example.com/hooks/latchkey';
let app: TestApp;
let admin: Client;
let member: Client;

beforeAll(async () => {
  app = await TestApp.start(loopback, presentClock());
  admin = await app.setUp();
  member = await app.member(admin, 'grace@example.com');
});
afterAll(() => app.close());

const stored = async () => (await app.services.db.read.selectFrom('webhooks').selectAll().execute()).length;
const positionOf = async (id: string) => {
  const name = `entity-events/webhook/${id}`;
  const rows = app.services.db.read.selectFrom('relays').where('name', '=', name);
  return (await rows.selectAll().executeTakeFirst())?.position;
};
const newest = async () => (await app.events()).at(-1).sequence;

/** Webhooks are limited in number: those of one test must not affect the next. */
async function removing<T>(work: () => Promise<T>): Promise<T> {
  const before = new Set((await admin.get(path)).body.webhooks.map(({ id }: Json) => id));
  const result = await work();
  for (const { id } of (await admin.get(path)).body.webhooks) if (!before.has(id)) await admin.delete(`${path}/${id}`);
  return result;
}

describe('POST /webhooks', () => {
  it('201: an administrator’s session registers a webhook, and gets its secret (EVENT-18, EVENT-25, LEAVER-5)', async () => {
    const { status, body, headers } = await admin.post(path, { url });
    expect(status).toBe(201);
    const now = toTimestamp(app.clock.now());
    expect(body).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/),
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      url,
      description: null,
      events: null,
      state: 'on',
      offReason: null,
      offAt: null,
      earlierSecretUntil: null,
      createdBy: admin.userId,
      createdByToken: null,
      creatorIsAdministrator: true,
      createdAt: now,
      updatedAt: now,
    });
    expect(headers.get('cache-control')).toBe('no-store');
    expect(await positionOf(body.id)).toBe(await newest());
  });

  it('201: a personal access token with org:admin does so too, and is remembered (SCOPE-17, SCOPE-26)', async () => {
    const token = await admin.token({ scopes: ['org:admin'] });
    const { status, body } = await token.post(path, { url, description: ' Intranet ', events: ['userAdded'] });
    expect([status, body.createdByToken, body.description, body.events]).toEqual([
      201,
      token.tokenId,
      'Intranet',
      ['userAdded'],
    ]);
  });

  it('201: types of event become a set in their usual order; null means all (EVENT-18)', () =>
    removing(async () => {
      const events = ['userDeleted', 'orgCreated', 'userDeleted'];
      expect((await registerWebhook(admin, url, { events })).events).toEqual(['orgCreated', 'userDeleted']);
      expect((await registerWebhook(admin, url, { events: null, description: null })).events).toBeNull();
    }));

  it('201: begins after a sequence that is asked for (EVENT-10)', () =>
    removing(async () => {
      for (const after of [0, 1, await newest()]) {
        const { id } = await registerWebhook(admin, 'https://example.invalid/', { after });
        expect(await positionOf(id)).toBe(after);
      }
    }));

  it.each([
    ['in the normal form', 'HTTPS://EXAMPLE.com:443/a/../b?q=1', 'https://example.com/b?q=1'],
    ['with a port', 'https://example.com:8443', 'https://example.com:8443/'],
    ['of a public address', 'https://93.184.216.34/', 'https://93.184.216.34/'],
    ['of a public IPv6 address', 'https://[2606:4700::1111]/', 'https://[2606:4700::1111]/'],
    ['of an allowed network', 'https://127.0.0.1/', 'https://127.0.0.1/'],
    ['of an allowed network, by http', 'http://127.0.0.1:8080/', 'http://127.0.0.1:8080/'],
    ['by http, wherever the name may lead', 'http://receiver.internal/', 'http://receiver.internal/'],
  ])('201: an address %s (EVENT-24, CONFIG-31)', (_, given, kept) =>
    removing(async () => {
      const { status, body } = await admin.post(path, { url: given });
      expect([status, body.url]).toEqual([201, kept]);
    }),
  );

  const notPublic = 'must lead to a public address, or one in OUTBOUND_NETWORKS';
  const notListed = 'http:// may only lead to an address in OUTBOUND_NETWORKS';
  const notAnAddress = 'must be an address such as https://example.com/hook';
  it.each([
    ['', notAnAddress],
    ['example.com', notAnAddress],
    ['https://', notAnAddress],
    ['https://exa mple.com/', notAnAddress],
    ['https://1.2.3.4.5/', notAnAddress],
    ['ftp://example.com/', 'must begin with https://'],
    ['file:///etc/passwd', 'must begin with https://'],
    ['javascript:alert(1)', 'must begin with https://'],
    ['https://user@example.com/', 'must not hold a user name or password'],
    ['https://user:pass@example.com/', 'must not hold a user name or password'],
    ['https://:pass@example.com/', 'must not hold a user name or password'],
    ['https://example.com/#part', 'must not have a fragment (#)'],
    [`https://example.com/${'x'.repeat(2_048)}`, 'must have at most 2048 characters'],
    [`https://example.com/${'ü'.repeat(500)}`, 'must have at most 2048 characters'],
    ['http://93.184.216.34/', notListed],
    ['http://10.0.0.1/', notListed],
    ['https://10.0.0.1/', notPublic],
    ['https://169.254.169.254/latest/meta-data/', notPublic],
    ['https://192.168.1.1/', notPublic],
    ['https://0.0.0.0/', notPublic],
    ['https://0xa9.0xfe.0xa9.0xfe/', notPublic],
    ['https://2852039166/', notPublic],
    ['https://[::ffff:10.0.0.1]/', notPublic],
    ['https://[fd00::1]/', notPublic],
    ['https://[fe80::1]/', notPublic],
    ['https://[64:ff9b::10.0.0.1]/', notPublic],
  ])('400: the address %j (EVENT-24)', async (given, message) => {
    const { status, body } = await admin.post(path, { url: given });
    expect([status, body.error.details]).toEqual([400, [{ field: 'body.url', message }]]);
  });

  it.each([
    ['no address', {}],
    ['an address that is no text', { url: ['https://example.com'] }],
    ['no type of event', { url, events: [] }],
    ['an unknown type of event', { url, events: ['userAdded', 'tokenCreated'] }],
    ['one type that is no list', { url, events: 'userAdded' }],
    ['a description with a line break', { url, description: 'a\nb' }],
    ['a sequence before the first', { url, after: -1 }],
    ['a sequence that is no number', { url, after: '1' }],
    ['half a sequence', { url, after: 0.5 }],
  ])('400: %s', async (_, body) => expect((await admin.post(path, body)).status).toBe(400));

  it('400: a sequence that is still to come, naming what there is (EVENT-10)', async () => {
    const last = await newest();
    const { status, body } = await admin.post(path, { url, after: last + 1 });
    expect([status, body.error.details]).toEqual([
      400,
      [{ field: 'body.after', message: `must be from 0 to ${last}` }],
    ]);
  });

  it('401, 403: for no one, for members, and for tokens without the scope, whatever the input (SCOPE-17)', async () => {
    const before = await stored();
    const narrow = await admin.token({ scopes: ['org:write', 'user:write'] });
    for (const [client, status] of [
      [app.anonymous, 401],
      [app.service(['EVENTS_READ']), 401],
      [member, 403],
      [await member.token(), 403],
      [narrow, 403],
    ] as const) {
      for (const body of [{ url }, { url: 'nonsense' }]) expect((await client.post(path, body)).status).toBe(status);
    }
    expect(await stored()).toBe(before);
  });

  it('409: more than 50, those that have ended not counted', async () => {
    const own = await TestApp.start();
    const owner = await own.setUp();
    const maker = await owner.token();
    for (let count = 0; count < 50; count += 1) await registerWebhook(count === 0 ? maker : owner, url);
    const { status, body } = await owner.post(path, { url });
    expect([status, body.message]).toEqual([409, 'There are 50 webhooks already: delete one first']);
    await owner.delete(`/personal-access-tokens/${maker.tokenId}`);
    expect((await owner.post(path, { url })).status).toBe(201);
    expect((await owner.post(path, { url })).status).toBe(409);
    await own.close();
  });

  it('400: http, and private addresses, where OUTBOUND_NETWORKS lists nothing (EVENT-24, CONFIG-31)', async () => {
    const own = await TestApp.start({ OUTBOUND_NETWORKS: '' });
    const owner = await own.setUp();
    const message = async (given: string) => (await owner.post(path, { url: given })).body.error.details[0].message;
    for (const given of ['http://example.com/', 'http://127.0.0.1/', 'http://10.0.0.1/']) {
      expect(await message(given)).toBe('must begin with https://');
    }
    for (const given of [
      'https://127.0.0.1/',
      'https://2130706433/',
      'https://0x7f.1/',
      'https://[::ffff:127.0.0.1]/',
    ]) {
      expect(await message(given)).toBe(notPublic);
    }
    own.environment['OUTBOUND_NETWORKS'] = '127.0.0.1';
    own.services.reloadConfig();
    expect((await owner.post(path, { url: 'http://127.0.0.1/' })).status).toBe(201);
    await own.close();
  });

  it('the secret is stored encrypted, and neither it nor the whole address is in log or audit log (EVENT-25, AUDIT-8)', async () => {
    const secretUrl = 'https://hooks.example.com/services/T000/very-secret-path';
    const { id, secret } = await registerWebhook(admin, secretUrl, { events: ['userAdded'] });
    const row = storedRows(app)['webhooks']?.find((one) => one.id === id);
    expect(row.secret).not.toContain(secret);
    expect(await app.services.encryption.decrypt('webhook-secret', row.secret)).toMatchObject({});
    expect(app.logLines.join('\n')).not.toContain('very-secret-path');
    const audit = await app.audit();
    expect(JSON.stringify(audit)).not.toContain('very-secret-path');
    expect(audit.at(-1)).toMatchObject({ action: 'webhook.created', subject_id: id, actor_user_id: admin.userId });
    expect(audit.at(-1).changes).toEqual({
      origin: { before: null, after: 'https://hooks.example.com' },
      url: { before: null, after: '[secret]' },
      events: { before: null, after: ['userAdded'] },
      state: { before: null, after: 'on' },
    });
  });
});
