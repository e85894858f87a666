import { beforeAll, describe, expect, it } from 'vitest';
import { RefusedError } from '../errors.ts';
import { type PasswordHasher, passwordHasher } from './passwords.ts';

describe('passwordHasher', () => {
  let passwords: PasswordHasher;
  beforeAll(async () => {
    passwords = await passwordHasher();
  });

  it('hashes with argon2id at the recommended cost, salted (PASSWORD-4)', async () => {
    const [one, other] = await Promise.all([passwords.hash('Correct-Horse-7'), passwords.hash('Correct-Horse-7')]);
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(one).not.toBe(other);
    expect(await passwords.matches(one, 'Correct-Horse-7')).toBe(true);
    expect(await passwords.matches(one, 'correct-Horse-7')).toBe(false);
  });

  it('counts the whole password: twins of 73 bytes and behind a NUL differ (PASSWORD-4)', async () => {
    const long = `Aa1!${'x'.repeat(68)}`;
    expect(await passwords.matches(await passwords.hash(`${long}1`), `${long}2`)).toBe(false);
    expect(await passwords.matches(await passwords.hash('Aa1!\0left'), 'Aa1!\0right')).toBe(false);
  });

  it('takes what looks the same for the same, however it was typed (PASSWORD-4)', async () => {
    expect(
      await passwords.matches(await passwords.hash('Pässword-1'.normalize('NFC')), 'Pässword-1'.normalize('NFD')),
    ).toBe(true);
  });

  it('matches nothing for nobody, and works as long on it (AUTH-9)', async () => {
    const known = await passwords.hash('Correct-Horse-7');
    const timed = async (hash: string | null) => {
      const startedMs = performance.now();
      expect(await passwords.matches(hash, 'wrong')).toBe(false);
      return performance.now() - startedMs;
    };
    await timed(null);
    const knownMs: number[] = [];
    const unknownMs: number[] = [];
    for (let round = 0; round < 7; round += 1) {
      knownMs.push(await timed(known));
      unknownMs.push(await timed(null));
    }
    expect(Math.min(...unknownMs)).toBeGreaterThan(Math.min(...knownMs) / 2);
  });

  it('refuses, at once, more than 64 that wait, and works on afterwards', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 80 }, () => passwords.hash('Correct-Horse-7')));
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.length).toBeGreaterThanOrEqual(14);
    expect(refused.length).toBeLessThanOrEqual(16);
    for (const { reason } of refused) {
      expect(reason).toBeInstanceOf(RefusedError);
      expect(reason).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    }
    expect(await passwords.hash('Correct-Horse-7')).toMatch(/^\$argon2id/);
  });
});
