import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalJWKSet, jwtVerify, SignJWT } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { headerOf } from '../../test/support/jwt.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { StartupError } from '../base/errors.ts';
import { Secret } from '../base/secret.ts';
import { keyFile } from './key-place.ts';
import { openSigningKeys } from './keys.ts';

/** 128 random bits. Rule: CRED-1. */
const rnd = expect.stringMatching(/^[\w-]{22}$/);

describe('openSigningKeys', () => {
  let dataDir: string;
  let file: string;
  const clock = new TestClock();
  const open = (sharedSecret: Secret | null = null) =>
    openSigningKeys({ place: keyFile(dataDir), clock, sharedSecret });

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'latchkey-keys-'));
    file = join(dataDir, 'signing-keys.json');
  });
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

  it('makes keys once, for their owner alone, and finds them again (AUTH-34, CONFIG-3)', async () => {
    const first = await open();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const sealed = (await first.signInternal({ userId: 'u' })).expose();
    const second = await open();
    expect(await second.publicKeys()).toEqual(await first.publicKeys());
    expect(await second.verifyInternal(sealed)).toEqual({ rnd, userId: 'u' });
  });

  it('publishes no private part (AUTH-35)', async () => {
    const publicKeys = await (await open()).publicKeys();
    const { d } = JSON.parse(readFileSync(file, 'utf8')).keys[0];
    expect(publicKeys).toHaveLength(1);
    expect(JSON.stringify(publicKeys)).not.toContain(d);
    expect(Object.keys(publicKeys[0] ?? {}).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
  });

  it('signs with the first key, publishes and unseals with each: a rotation strands nothing (AUTH-38)', async () => {
    const old = (await (await open()).signInternal({ made: 'before' })).expose();
    const oldKeys = JSON.parse(readFileSync(file, 'utf8')).keys;
    rmSync(file);
    await open();
    const newKeys = JSON.parse(readFileSync(file, 'utf8')).keys;
    writeFileSync(file, JSON.stringify({ keys: [...newKeys, ...oldKeys] }));
    const rotated = await open();
    expect(await rotated.verifyInternal(old)).toEqual({ rnd, made: 'before' });
    expect(headerOf((await rotated.sign({})).expose())['kid']).toBe(newKeys[0].kid);
    expect((await rotated.publicKeys()).map(({ kid }) => kid)).toEqual([newKeys[0].kid, oldKeys[0].kid]);
  });

  it.each([
    ['cut off', (content: string) => content.slice(0, -20)],
    ['empty', () => ''],
    ['without keys', () => '{"keys":[]}'],
    ['of another kind', (content: string) => content.replace('Ed25519', 'X25519')],
  ])('refuses to start with a key file that is %s', async (_, damage) => {
    await open();
    writeFileSync(file, damage(readFileSync(file, 'utf8')));
    await expect(open()).rejects.toThrow(StartupError);
    await expect(open()).rejects.toThrow(/^The key file .+ is damaged: restore it from a backup$/);
  });

  it.each([0o604, 0o640, 0o644, 0o666])('refuses to start with a key file of mode %o', async (mode) => {
    await open();
    chmodSync(file, mode);
    await expect(open()).rejects.toThrow(/can be read by others: run chmod 600/);
  });

  it('what is sealed says nothing to anyone who has the public keys, and what is signed is no seal (AUTH-28)', async () => {
    const keys = await open();
    const sealed = (await keys.signInternal({ email: 'ceo@victim.example' })).expose();
    await expect(jwtVerify(sealed, createLocalJWKSet({ keys: [...(await keys.publicKeys())] }))).rejects.toThrow(
      /"alg"/,
    );
    expect(headerOf(sealed)).toEqual({ alg: 'HS256', typ: 'sealed+jwt' });
    expect(await keys.verifyInternal((await keys.sign({ email: 'ceo@victim.example' })).expose())).toBeNull();
  });

  it('unseals nothing made by anyone else, nor expired by the service’s own clock (HTTP-29)', async () => {
    const keys = await open();
    const foreign = new SignJWT({}).setProtectedHeader({ alg: 'HS256', typ: 'sealed+jwt' });
    expect(
      await keys.verifyInternal(await foreign.sign(new TextEncoder().encode('0123456789abcdef0123456789abcdef'))),
    ).toBeNull();
    const exp = Math.floor(clock.now() / 1_000) + 60;
    const sealed = (await keys.signInternal({ exp })).expose();
    expect(await keys.verifyInternal(sealed)).toEqual({ rnd, exp });
    clock.set(exp * 1_000);
    expect(await keys.verifyInternal(sealed)).toBeNull();
    expect(await keys.verifyInternal('')).toBeNull();
  });

  it('with a shared secret signs HS256, publishes nothing and writes no file (AUTH-37)', async () => {
    const raw = '0123456789abcdef0123456789abcdef';
    const keys = await open(new Secret(raw));
    expect(await keys.publicKeys()).toEqual([]);
    expect(headerOf((await keys.sign({})).expose())).toEqual({ alg: 'HS256', typ: 'JWT' });
    expect(() => statSync(file)).toThrow('ENOENT');
    const shared = new TextEncoder().encode(raw);
    expect((await jwtVerify((await keys.sign({ a: 1 })).expose(), shared)).payload).toEqual({ rnd, a: 1 });
    const sealed = (await keys.signInternal({ a: 1 })).expose();
    await expect(jwtVerify(sealed, shared)).rejects.toThrow(/signature/);
    expect(await keys.verifyInternal(sealed)).toEqual({ rnd, a: 1 });
    const other = await open(new Secret('fedcba9876543210fedcba9876543210'));
    expect(await keys.verifyInternal((await other.signInternal({})).expose())).toBeNull();
  });
});
