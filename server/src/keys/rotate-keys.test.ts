import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { headerOf } from '../../test/support/jwt.ts';
import { type Client, TestApp } from '../../test/support/test-app.ts';
import { day, minute, second } from '../base/clock.ts';
import { StartupError } from '../base/errors.ts';
import { signingKeyFile } from './key-place.ts';
import { keysInFile, keysInStore, rotateSigningKeys } from './rotate-keys.ts';

let app: TestApp;
let admin: Client;
beforeEach(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterEach(() => app.close());

const home = () => (app.services.db.isShared ? keysInStore(app.services.encryption) : keysInFile(app.dataDir));
const rotate = () => rotateSigningKeys(app.services, home(), { requestId: 'operator', network: 'local' });

async function rotated() {
  const rotation = await rotate();
  if (rotation === 'underway') throw new Error('the last rotation is still under way');
  return rotation;
}

/** The names of the published keys, the newest first. */
async function published(): Promise<string[]> {
  const { body } = await app.anonymous.get('//.well-known/jwks.json');
  return body.keys.map(({ kid }: { kid: string }) => kid);
}

const kidOf = (token: string | null) => String(headerOf((token ?? '').replace(/^lkpat_/, ''))['kid']);

/** Verifies a token with nothing but the published keys. */
async function verify(token: string | null): Promise<void> {
  const { body } = await app.anonymous.get('//.well-known/jwks.json');
  const jwt = (token ?? '').replace(/^lkpat_/, '');
  await jwtVerify(jwt, createLocalJWKSet(body), { currentDate: new Date(app.clock.now()) });
}

/** Lets the running service see what was done to the keys. */
async function later(ms: number): Promise<void> {
  app.clock.advance(ms);
  await published();
}

describe('rotateSigningKeys', () => {
  it('publishes the new key while it runs, signs with it two minutes later, and strands no token (AUTH-38, AUTH-59)', async () => {
    const [first = ''] = await published();
    const forever = await admin.token({ expiryDays: 'never' });
    expect(kidOf(forever.credential)).toBe(first);
    const begun = await app.anonymous.post('/userAccount/initAuth', { email: 'ada@example.com' });

    const { kid, signsFromMs, kept, dropped } = await rotated();
    expect({ signsFromMs, kept, dropped }).toEqual({
      signsFromMs: app.clock.now() + 2 * minute,
      kept: 1,
      dropped: 0,
    });
    await later(30 * second);
    expect(await published()).toEqual([kid, first]);
    // Clients that verify may not have fetched it yet.
    expect(kidOf((await admin.token()).credential)).toBe(first);
    app.clock.set(signsFromMs - 1);
    expect(kidOf((await admin.token()).credential)).toBe(first);
    app.clock.set(signsFromMs);
    const after = await admin.token();
    expect(kidOf(after.credential)).toBe(kid);

    for (const client of [admin, forever, after]) {
      expect((await client.get('/org')).status).toBe(200);
      await verify(client.credential);
    }
    const body = { method: 'password', credentials: { password: 'Marble-Kettle-7' }, email: 'ada@example.com' };
    const token = begun.headers.get('x-session-token') ?? '';
    const signedIn = await app.anonymous.post('/userAccount/authenticate', body, {
      headers: { 'x-session-token': token },
    });
    expect(signedIn.status).toBe(200);
    expect(kidOf(signedIn.body.accessToken)).toBe(kid);
  });

  it('keeps a key as long as a token without end may need it, and lets go of it at a later rotation (AUTH-59)', async () => {
    const [first = ''] = await published();
    const forever = await admin.token({ expiryDays: 'never' });
    const second_ = await rotated();
    await later(40 * day);
    admin = await app.signIn('ada@example.com');
    const third = await rotated();
    expect(third).toMatchObject({ kept: 2, dropped: 0 });
    await later(minute);
    expect(await published()).toEqual([third.kid, second_.kid, first]);
    await verify(forever.credential);

    await app.services.db.transaction((tx) =>
      tx.updateTable('personal_access_tokens').set({ revoked_at: app.clock.now() }).execute(),
    );
    await later(day);
    const fourth = await rotated();
    await later(minute);
    // What the second one signed may live for a while.
    expect(await published()).toEqual([fourth.kid, third.kid, second_.kid]);
    expect(fourth).toMatchObject({ kept: 2, dropped: 1 });
  });

  it('refuses another rotation before the new key signs, and changes nothing then (AUTH-59)', async () => {
    const [first] = await published();
    const { kid } = await rotated();
    app.clock.advance(2 * minute - 1);
    expect(await rotate()).toBe('underway');
    expect(await published()).toEqual([kid, first]);
    app.clock.advance(1);
    await rotated();
  });

  it('of rotations at the same moment lets one happen (AUTH-59)', async () => {
    const ends = await Promise.all(Array.from({ length: 8 }, rotate));
    expect(ends.filter((end) => end !== 'underway')).toHaveLength(1);
    await later(minute);
    expect(await published()).toHaveLength(2);
  });

  it('is in the audit log, without anything secret (AUTH-59, AUDIT-9)', async () => {
    const { kid } = await rotated();
    const record = (await app.audit()).at(-1);
    expect(record).toMatchObject({
      action: 'keys.signing-rotated',
      actor_user_id: null,
      request_id: 'operator',
      details: { kid, kept: 1, dropped: 0 },
    });
  });
});

describe('keys in a file', () => {
  const embedded = async () => {
    await app.close();
    app = await TestApp.start({ DATABASE_URL: '' });
    admin = await app.setUp();
    return join(app.dataDir, signingKeyFile);
  };

  it('that go or break while the service runs leave it with those that it knows (AUTH-59)', async () => {
    const file = await embedded();
    const before = await published();
    const content = readFileSync(file, 'utf8');
    writeFileSync(file, content.slice(0, -20));
    await later(minute);
    expect(await published()).toEqual(before);
    await expect(rotated()).rejects.toThrow(StartupError);
    expect((await app.audit()).some(({ action }) => action === 'keys.signing-rotated')).toBe(false);
    writeFileSync(file, content);
    const { kid } = await rotated();
    await later(minute);
    expect(await published()).toEqual([kid, ...before]);
  });
});
