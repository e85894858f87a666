import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { day, hour } from '../../src/base/clock.ts';
import { pruneIdempotencyKeys } from '../../src/http/idempotency.ts';
import { storedRows } from '../support/second-connection.ts';
import { type Client, type Json, organization, TestApp } from '../support/test-app.ts';

const path = '/userGroups';

describe('Idempotency-Key', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let count = 0;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  const withKey = (key: string) => ({ headers: { 'idempotency-key': key } });
  const fresh = () => {
    count += 1;
    return { key: `key-${count}`, name: `Group ${count}`, email: `fresh-${count}@example.com` };
  };
  const group = (name: string) => ({ name, type: 'custom' });
  const rows = () => app.services.db.read.selectFrom('idempotency_keys').selectAll().execute();

  it.each([
    ['/users', () => ({ fullName: 'Ann', email: fresh().email }), [], '_id'],
    [path, () => group(fresh().name), [], '_id'],
    ['/teams', () => ({ name: 'Research', members: [] }), [], 'team.id'],
    ['/personal-access-tokens', () => ({ name: 'Nightly' }), ['token', 'accessToken'], null],
    ['/service-clients', () => ({ name: 'Nightly', scopes: ['USER_LOOKUP'] }), ['clientSecret'], null],
  ])(
    '201: POST %s is carried out once, and answered again without secrets (FIT-135, FIT-136, FIT-139)',
    async (...[at, make, secret, id]) => {
      const { key } = fresh();
      const body = make();
      const first = await admin.post(at, body, withKey(key));
      expect([first.status, first.headers.get('idempotency-replayed')]).toEqual([201, null]);
      const before = storedRows(app);
      const reordered = Object.fromEntries(Object.entries(body).toReversed());
      for (const same of [body, reordered]) {
        const again = await admin.post(at, same, withKey(key));
        expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 'true']);
        const expected = structuredClone(first.body);
        const [outer = '', inner] = secret;
        if (inner !== undefined) delete expected[outer][inner];
        else delete expected[outer];
        expect(again.body).toEqual(expected);
        expect(again.headers.get('location')).toBe(first.headers.get('location'));
      }
      expect(storedRows(app)).toEqual(before);
      const made = id?.split('.').reduce((value: Json, name) => value[name], first.body);
      expect(first.headers.get('location')).toBe(made === undefined ? null : `/api/v1${at}/${made}`);
      expect((await admin.get(made === undefined ? at : `${at}/${made}`)).status).toBe(200);
    },
  );

  it('422: another body or another operation under the same key, and nothing is made (FIT-135)', async () => {
    const { key, name, email } = fresh();
    await admin.post(path, group(name), withKey(key));
    const before = storedRows(app);
    for (const [at, body] of [
      [path, group(`${name} 2`)],
      ['/users', { fullName: 'Ann', email }],
      ['/teams', { name }],
    ] as const) {
      const { status, body: refused } = await admin.post(at, body, withKey(key));
      expect([at, status, refused.error.code]).toEqual([at, 422, 'IDEMPOTENCY_KEY_REUSED']);
    }
    expect(storedRows(app)).toEqual(before);
  });

  it.each([
    ['empty', ''],
    ['of 256 characters', 'x'.repeat(256)],
    ['with a space', 'a b'],
    ['with a letter outside ASCII', 'é'],
    ['with a control character', 'a\tb'],
  ])('400: a key %s, and nothing is made (FIT-135)', async (_, key) => {
    const before = storedRows(app);
    const { status, body } = await admin.post(path, group(fresh().name), withKey(key));
    expect([status, body.error.details]).toEqual([
      400,
      [{ field: 'headers.idempotency-key', message: 'must be 1 to 255 visible ASCII characters' }],
    ]);
    expect(storedRows(app)).toEqual(before);
  });

  it('201: a key of 255 characters; other operations ignore the header (FIT-135)', async () => {
    const key = '~'.repeat(255);
    expect((await admin.post(path, group(fresh().name), withKey(key))).status).toBe(201);
    expect((await admin.get(path, withKey(' '))).status).toBe(200);
  });

  it('409: while the first request is being carried out (FIT-135)', async () => {
    const { key, name } = fresh();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isHeld = false;
    const holding = app.services.db.transaction(async () => {
      isHeld = true;
      await held;
    });
    await vi.waitUntil(() => isHeld);
    const requests = Array.from({ length: 5 }, () => admin.post(path, group(name), withKey(key)));
    const early = await Promise.any(
      requests.map(async (request) => {
        const response = await request;
        if (response.status !== 409) throw new Error('carried out');
        return response;
      }),
    );
    expect(early.body.error.code).toBe('CONFLICT');
    release();
    await holding;
    const made = (await Promise.all(requests)).filter(({ status }) => status === 201);
    expect(made.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1);
    expect(new Set(made.map(({ body }) => body._id)).size).toBe(1);
  });

  it('a request that was refused leaves its key free (FIT-137)', async () => {
    const { key, name } = fresh();
    const { body } = await admin.post(path, group(name));
    expect((await admin.post(path, group(name), withKey(key))).status).toBe(409);
    await admin.delete(`${path}/${body._id}`);
    const made = await admin.post(path, group(name), withKey(key));
    expect([made.status, made.headers.get('idempotency-replayed')]).toEqual([201, null]);
  });

  it('a key is its user’s, and there of the sessions or of one token (FIT-138)', async () => {
    const { key } = fresh();
    const make = (client: Client) => client.post('/teams', { name: 'Research' }, withKey(key));
    const session = await make(member);
    expect((await make(await app.signIn('grace@example.com'))).body).toEqual(session.body);
    const [one, other] = [await member.token(), await member.token({ scopes: ['team:write'] })];
    const ids = new Set<string>([session.body.team.id]);
    for (const client of [admin, one, other]) {
      const { status, body, headers } = await make(client);
      expect([status, headers.get('idempotency-replayed')]).toEqual([201, null]);
      ids.add(body.team.id);
    }
    expect(ids.size).toBe(4);
  });

  it('401, 403: the first response is for callers that may still make the request (FIT-138)', async () => {
    const { key, email } = fresh();
    const ann = await app.member(admin, email);
    await app.promote(ann.userId);
    const token = await ann.token();
    const body = group(fresh().name);
    const make = (client: Client) => client.post(path, body, withKey(key)).then(({ status }) => status);
    expect([await make(ann), await make(token)]).toEqual([201, 409]);
    expect(await make(await ann.token({ scopes: ['usergroup:read'] }))).toBe(403);
    expect(await make(app.anonymous)).toBe(401);
    await app.demote(ann.userId);
    expect(await make(ann)).toBe(403);
    await app.promote(ann.userId);
    expect(await make(ann)).toBe(201);
    await ann.post('/userAccount/logout/manual');
    expect(await make(ann)).toBe(401);
    await app.demote(ann.userId);
    await app.deleteUser(ann.userId);
    expect(await make(token)).toBe(401);
  });

  it('only hashes and the response are stored, in the transaction of the change (FIT-136, FIT-137)', async () => {
    const { key } = fresh();
    const raw = `${key}-${'x'.repeat(40)}`;
    await admin.post('/personal-access-tokens', { name: 'Nightly' }, withKey(raw));
    const [row] = (await rows()).slice(-1);
    const last = (await rows()).find(({ response }) => response.includes('Nightly'));
    expect(JSON.stringify(await rows())).not.toContain(raw);
    expect(last?.response).not.toContain('accessToken');
    expect(row?.key_hash).toMatch(/^[\w-]{43}$/);
    expect(row?.bytes).toBe(Buffer.byteLength(row?.response ?? ''));
  });

  it('429: a user has at most 5,000 responses stored (FIT-137)', async () => {
    const { db, clock } = app.services;
    const values = Array.from({ length: 5_000 }, (_, place) => ({
      user_id: member.userId,
      key_hash: `hash ${place}`,
      request_hash: 'hash',
      response: '{}',
      bytes: 2,
      created_at: clock.now() - 23 * hour,
    }));
    await db.transaction(async (tx) => {
      while (values.length > 0) await tx.insertInto('idempotency_keys').values(values.splice(0, 500)).execute();
    });
    const { key } = fresh();
    const refused = await member.post('/teams', { name: 'Research' }, withKey(key));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '3600']);
    expect((await member.post('/teams', { name: 'Research' })).status).toBe(201);
    app.clock.advance(hour);
    expect((await member.post('/teams', { name: 'Research' }, withKey(key))).status).toBe(201);
  });

  it('after 24 hours a key is free, and its row is removed (FIT-137)', async () => {
    const { key, name } = fresh();
    const { body } = await admin.post(path, group(name), withKey(key));
    await admin.delete(`${path}/${body._id}`);
    app.clock.advance(day - 1);
    admin = await app.signIn(organization.contactEmail);
    expect((await admin.post(path, group(name), withKey(key))).body).toEqual(body);
    app.clock.advance(1);
    expect((await admin.post(path, group(name), withKey(key))).body._id).not.toBe(body._id);
    expect(await pruneIdempotencyKeys(app.services)).toBeGreaterThan(0);
    const [left] = await rows();
    expect([(await rows()).length, left?.user_id]).toEqual([1, admin.userId]);
  });
});
