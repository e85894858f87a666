import { EventEmitter, once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { onePixel } from '../../../test/support/made-pictures.ts';
import { type Client, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const picture = new Uint8Array(onePixel());

describe('an upload whose sender ends while the picture is worked on (AUTH-27, STORE-7)', () => {
  let app: TestApp;
  let admin: Client;
  /** An administrator who need not stay one. */
  let sender: Client;

  beforeEach(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    sender = await app.member(admin, 'grace@example.com');
    await app.promote(sender.userId);
  });
  afterEach(() => app.close());

  /** Every picture there is, and the last audit row that tells of one. */
  async function pictures() {
    const stored = await app.services.db.read.selectFrom('pictures').selectAll().execute();
    return { stored, told: (await app.audit()).filter(({ action }) => action === 'picture.stored') };
  }

  /** Holds an upload once its picture is made and before it is stored; meanwhile `act` happens. */
  async function uploadAround(client: Client, path: string, act: () => Promise<unknown>) {
    const { pictures: compressor } = app.services;
    const steps = new EventEmitter();
    const [made, released] = [once(steps, 'made'), once(steps, 'release')];
    const compress = async (bytes: Uint8Array, sender: string) => {
      const compressed = await compressor.compress(bytes, sender);
      steps.emit('made');
      await released;
      return compressed;
    };
    Object.assign(app.services, { pictures: { compress } });
    const response = client.upload(path, picture);
    await made;
    Object.assign(app.services, { pictures: compressor });
    await act();
    const before = await pictures();
    steps.emit('release');
    const { status, body } = await response;
    const after = await pictures();
    return { status, code: body.error?.code, isStored: JSON.stringify(after) !== JSON.stringify(before) };
  }

  const removeSender = async () => {
    await app.demote(sender.userId);
    await app.deleteUser(sender.userId);
  };

  const paths = ['/users/dp', '/org/logo'];

  it.each(paths)('201: %s, where nothing happens: the gate itself changes nothing', async (path) => {
    expect(await uploadAround(sender, path, () => admin.get('/org'))).toEqual({ status: 201, isStored: true });
  });

  it.each(paths)('401: %s, by someone who is deleted, by session and by token', async (path) => {
    const expected = { status: 401, code: 'TOKEN_INVALID', isStored: false };
    const token = await sender.token();
    expect(await uploadAround(token, path, removeSender)).toEqual(expected);
    sender = await app.member(admin, 'second@example.com');
    await app.promote(sender.userId);
    expect(await uploadAround(sender, path, removeSender)).toEqual(expected);
  });

  it.each(paths)('401: %s, by a session that is logged out and a token that is revoked', async (path) => {
    const token = await sender.token();
    const revoke = () => sender.delete(`/personal-access-tokens/${token.tokenId}`);
    expect(await uploadAround(token, path, revoke)).toEqual({ status: 401, code: 'TOKEN_REVOKED', isStored: false });
    const logOut = () => sender.post('/userAccount/logout/manual');
    const expected = { status: 401, code: 'SESSION_EXPIRED', isStored: false };
    expect(await uploadAround(sender, path, logOut)).toEqual(expected);
  });

  it.each(paths)('401: %s, where the organization is deleted (ORG-26)', async (path) => {
    const remove = () => app.deleteOrganization();
    expect(await uploadAround(sender, path, remove)).toEqual({ status: 401, code: 'TOKEN_INVALID', isStored: false });
  });

  it('403: the logo, by an administrator who is one no more; their own picture is stored (AUTH-29)', async () => {
    const demote = () => app.demote(sender.userId);
    const refused = { status: 403, code: 'ADMIN_REQUIRED', isStored: false };
    expect(await uploadAround(sender, '/org/logo', demote)).toEqual(refused);
    await app.promote(sender.userId);
    expect(await uploadAround(sender, '/users/dp', demote)).toEqual({ status: 201, isStored: true });
  });

  it('without the second look the picture would be stored: a broken twin is caught', async () => {
    Object.assign(app.services, { reauthorize: async () => {} });
    expect(await uploadAround(sender, '/users/dp', removeSender)).toEqual({ status: 201, isStored: true });
  });

  it('of two at once the one that is stored last stays, whole', async () => {
    let first: TestResponse | undefined;
    const { status } = await uploadAround(sender, '/users/dp', async () => {
      first = await sender.upload('/users/dp', new Uint8Array(onePixel()));
    });
    expect([first?.status, status]).toEqual([201, 201]);
    expect((await pictures()).stored).toHaveLength(1);
    expect((await pictures()).told).toHaveLength(2);
  });
});

describe('60 uploads in a minute by one person (ERR-24)', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start({ RATE_LIMIT: 'on' });
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  it('429 for the next one, logo or own picture, by session or token, for a minute', async () => {
    const token = await admin.token();
    const senders = [admin, token];
    for (let count = 0; count < 60; count += 1) {
      const path = count % 3 === 0 ? '/org/logo' : '/users/dp';
      expect((await senders[count % 2]?.upload(path, picture))?.status).toBe(201);
    }
    const audit = await app.audit();
    for (const path of ['/org/logo', '/users/dp']) {
      const { status, headers, body } = await token.upload(path, picture);
      expect([status, body.error.code]).toEqual([429, 'RATE_LIMITED']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      expect([headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual(['60', '0']);
    }
    expect(await app.audit()).toEqual(audit);
    // All other users, and all other work, continue.
    expect((await member.upload('/users/dp', picture)).status).toBe(201);
    expect((await admin.get('/users/dp')).status).toBe(200);
    expect((await admin.delete('/users/dp')).status).toBe(200);
    app.clock.advance(60_000);
    expect((await admin.upload('/users/dp', picture)).status).toBe(201);
  });
});
