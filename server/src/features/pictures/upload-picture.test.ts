import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jpegMarkers, noise, onePixel, plain } from '../../../test/support/made-pictures.ts';
import { diskError, watchStatements } from '../../../test/support/statement-watch.ts';
import { type Client, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const imageBytesLimit = 102_400;
const fresh = (bytes: Buffer) => new Uint8Array(bytes);
const made = async (colour: string) => fresh(await plain(40, 30, colour).png().toBuffer());
const code = ({ status, body }: TestResponse) => [status, body.error?.code];

let app: TestApp;
let admin: Client;
let member: Client;
let orgId: string;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  member = await app.member(admin, 'grace@example.com');
  orgId = (await admin.get('/org')).body._id;
});
afterAll(() => app.close());

const recordOf = (ownerId: string) =>
  app.services.db.read.selectFrom('pictures').where('owner_id', '=', ownerId).selectAll().executeTakeFirst();

async function whole() {
  const pictures = await app.services.db.read.selectFrom('pictures').orderBy('owner_id').selectAll().execute();
  return { pictures, audit: await app.audit(), events: await app.events() };
}

describe.each([
  { path: '/users/dp', what: "the caller's own picture (PICTURE-1)", ownerOf: (caller: Client) => caller.userId },
  { path: '/org/logo', what: 'the logo (PICTURE-5)', ownerOf: () => orgId },
])('PUT $path: $what', ({ path, ownerOf }) => {
  it.each(['png', 'jpeg', 'webp', 'gif'] as const)(
    '201: %s comes back as JPEG, and is what GET answers from then on (PICTURE-2, PICTURE-6, PICTURE-10)',
    async (type) => {
      const sent = fresh(await plain(40, 30, 'teal').toFormat(type).toBuffer());
      const { status, headers, bytes } = await admin.upload(path, sent, 'text/plain');
      expect([status, headers.get('content-type'), headers.get('content-length')]).toEqual([
        201,
        'image/jpeg',
        String(bytes.length),
      ]);
      expect([headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual(['no-store', 'nosniff']);
      expect(jpegMarkers(bytes)[0]).toBe('d8');
      expect(await sharp(bytes).metadata()).toMatchObject({ format: 'jpeg', width: 40, height: 30 });
      const again = await admin.get(path);
      expect([again.status, again.headers.get('content-type')]).toEqual([200, 'image/jpeg']);
      expect(again.bytes.equals(bytes)).toBe(true);
    },
  );

  it('201: it is kept in base64 with its type and time (PICTURE-13)', async () => {
    app.clock.advance(60_000);
    const { bytes } = await admin.upload(path, await made('red'));
    expect(await recordOf(ownerOf(admin))).toEqual({
      owner_id: ownerOf(admin),
      org_id: orgId,
      content: bytes.toString('base64'),
      mime_type: 'image/jpeg',
      updated_at: app.clock.now(),
    });
  });

  it('201: it takes the place of the one before (PICTURE-1)', async () => {
    const first = await admin.upload(path, await made('red'));
    const { pictures } = await whole();
    const second = await admin.upload(path, await made('blue'));
    expect(second.bytes.equals(first.bytes)).toBe(false);
    expect((await admin.get(path)).bytes.equals(second.bytes)).toBe(true);
    expect((await whole()).pictures).toHaveLength(pictures.length);
  });

  it('201: a megabyte becomes less than 102,400 bytes (PICTURE-9, PICTURE-13)', async () => {
    const photo = await noise(1_500, 1_100, 25).jpeg({ quality: 90 }).toBuffer();
    expect(photo.length).toBeGreaterThan(5 * imageBytesLimit);
    // What follows the end of a picture is no part of it.
    const padded = fresh(Buffer.concat([photo, Buffer.alloc(1_048_576 - photo.length)]));
    const { status, bytes } = await admin.upload(path, padded);
    expect(status).toBe(201);
    expect(bytes.length).toBeLessThan(imageBytesLimit);
    expect(Buffer.from((await recordOf(ownerOf(admin)))?.content ?? '', 'base64').equals(bytes)).toBe(true);
  });

  it('201: one audit row tells who and how large, and no event (STORE-1)', async () => {
    const before = await whole();
    const token = await admin.token({ scopes: ['user:write', 'org:write'] });
    const { bytes } = await token.upload(path, await made('red'));
    const { audit, events } = await whole();
    expect(audit).toHaveLength(before.audit.length + 2);
    expect(audit.at(-1)).toMatchObject({
      action: 'picture.stored',
      org_id: orgId,
      actor_user_id: admin.userId,
      actor_token_id: token.tokenId,
      subject_id: ownerOf(admin),
      details: { bytes: bytes.length },
    });
    expect(events).toEqual(before.events);
  });

  it('400, 413 and 415: what is refused leaves the one before, and no audit row (PICTURE-8 to PICTURE-12)', async () => {
    await admin.upload(path, await made('green'));
    const before = await whole();
    const refused = [
      [await admin.upload(path, new Uint8Array()), [400, 'BAD_REQUEST']],
      [await admin.upload(path, fresh(Buffer.from('text'))), [415, 'UNSUPPORTED_MEDIA_TYPE']],
      [await admin.upload(path, fresh(onePixel().subarray(0, -20))), [400, 'BAD_REQUEST']],
      [await admin.upload(path, new Uint8Array(1_048_577)), [413, 'PAYLOAD_TOO_LARGE']],
      [await admin.put(path), [400, 'VALIDATION_ERROR']],
      [await admin.put(path, { file: 'x' }), [415, 'UNSUPPORTED_MEDIA_TYPE']],
    ] as const;
    for (const [response, expected] of refused) expect(code(response)).toEqual(expected);
    expect(await whole()).toEqual(before);
  });

  it.each(['full', 'broken', 'read-only'] as const)(
    '503: a disk that is %s at any point of storing it leaves everything as it was (STORE-1)',
    async (failure) => {
      await admin.upload(path, await made('green'));
      const sent = await made('red');
      for (const point of [/^insert into "pictures"/, /^insert into "audit_log"/, /^commit$/]) {
        const before = await whole();
        const stop = watchStatements((sql) => {
          if (point.test(sql)) throw diskError(failure);
        });
        const response = await admin.upload(path, sent);
        stop();
        expect([...code(response), response.headers.get('retry-after')]).toEqual([503, 'UNAVAILABLE', '5']);
        expect(await whole()).toEqual(before);
      }
      expect((await admin.upload(path, sent)).status).toBe(201);
    },
  );
});

describe('who may upload what', () => {
  it('everyone has a picture of their own, and no one sees or changes another one (PICTURE-1, PICTURE-2)', async () => {
    const other = await app.member(admin, 'other@example.com');
    const mine = await member.upload('/users/dp', await made('orange'));
    const theirs = await other.upload('/users/dp', await made('blue'));
    expect((await member.get('/users/dp')).bytes.equals(mine.bytes)).toBe(true);
    expect((await other.get('/users/dp')).bytes.equals(theirs.bytes)).toBe(true);
    await other.delete('/users/dp');
    expect((await member.get('/users/dp')).bytes.equals(mine.bytes)).toBe(true);
    for (const query of ['?id=', '?userId=', '?user_id=']) {
      expect((await admin.get(`/users/dp${query}${member.userId}`)).bytes.equals(mine.bytes)).toBe(false);
    }
    for (const path of [`/users/${member.userId}/dp`, `/users/dp/${member.userId}`]) {
      expect((await admin.get(path)).status).toBe(404);
      expect((await admin.upload(path, await made('black'))).status).toBe(404);
    }
  });

  it('403: a member on the logo, by session and by token; 401: no one (PICTURE-5, ERR-15)', async () => {
    const before = await whole();
    const token = await member.token({ scopes: ['org:write'] });
    for (const client of [member, token]) {
      expect(code(await client.upload('/org/logo', await made('red')))).toEqual([403, 'ADMIN_REQUIRED']);
    }
    for (const path of ['/org/logo', '/users/dp']) {
      expect(code(await app.anonymous.upload(path, await made('red')))).toEqual([401, 'UNAUTHORIZED']);
    }
    expect((await whole()).pictures).toEqual(before.pictures);
  });

  it.each([
    ['/users/dp', 'user:write', ['user:read', 'org:write', 'org:admin']],
    ['/org/logo', 'org:write', ['org:read', 'user:write', 'org:admin']],
  ])('%s takes a token with %s and no other (ERR-16)', async (path, scope, others) => {
    const good = await admin.token({ scopes: [scope] });
    expect((await good.upload(path, await made('red'))).status).toBe(201);
    const poor = await admin.token({ scopes: others });
    const { status, body } = await poor.upload(path, await made('red'));
    expect([status, body.message]).toEqual([403, `Insufficient scope. Required: ${scope}`]);
  });

  it('no list and no record of a user or the organization holds a picture (PICTURE-13)', async () => {
    const picture = await member.upload('/users/dp', await made('red'));
    const logo = await admin.upload('/org/logo', await made('blue'));
    const service = app.service();
    const responses = [
      await admin.get('/users'),
      await admin.get('/users?page=1'),
      await admin.get('/users/fetch/with-groups'),
      await admin.get(`/users/${member.userId}`),
      await admin.post('/users/by-ids', { userIds: [member.userId] }),
      await service.get('/users/email/exists?email=grace@example.com'),
      await service.get(`/users/internal/${member.userId}`),
      await admin.get('/org'),
    ];
    for (const { status, text } of responses) {
      expect(status).toBe(200);
      for (const { bytes } of [picture, logo]) expect(text).not.toContain(bytes.toString('base64').slice(0, 12));
      expect(text).not.toMatch(/"(pic|picture|profilePicture|logo|logoUrl|mimeType)"/);
    }
  });
});
