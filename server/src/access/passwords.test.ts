import { hash } from '@node-rs/argon2';
import { beforeAll, describe, expect, it } from 'vitest';
import { RefusedError } from '../errors.ts';
import { isVerifiable, type PasswordHasher, passwordHasher } from './passwords.ts';

describe('passwordHasher', () => {
  let passwords: PasswordHasher;
  beforeAll(async () => {
    // However busy the machine is: what a wait leads to has a test of its own.
    passwords = await passwordHasher(undefined, Number.POSITIVE_INFINITY);
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

  it('refuses those whose turn comes too late (CRED-5)', async () => {
    const impatient = await passwordHasher({ memoryCost: 8, timeCost: 1 }, 0);
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => impatient.hash('Correct-Horse-7')));
    expect(outcomes.at(-1)).toMatchObject({ status: 'rejected', reason: { status: 503 } });
  });

  /** A hash as another system made it. */
  const foreign = (memoryCost: number, timeCost: number, parallelism = 1) =>
    hash('Correct-Horse-7', { algorithm: 2, memoryCost, timeCost, parallelism });

  it('checks hashes of other systems within bounds, and no others, right as the password may be (CRED-5)', async () => {
    for (const [memory, passes] of [
      [65_536, 3],
      [65_536, 4],
      [4_096, 3],
    ] as const) {
      expect(await passwords.matches(await foreign(memory, passes), 'Correct-Horse-7')).toBe(true);
    }
    for (const [memory, passes] of [
      [65_544, 1],
      [65_536, 5],
      [8_192, 33],
    ] as const) {
      const dear = await foreign(memory, passes);
      expect([isVerifiable(dear), await passwords.matches(dear, 'Correct-Horse-7')]).toEqual([false, false]);
    }
    for (const wrong of ['', '$argon2id$v=19$m=8,t=0,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g', '$2b$10$x']) {
      expect([isVerifiable(wrong), await passwords.matches(wrong, 'Correct-Horse-7')]).toEqual([false, false]);
    }
  });

  it('bounds those who wait by what their hashes cost, not by their number alone (CRED-5)', async () => {
    const dear = await foreign(65_536, 4);
    await passwords.levelWith([dear]);
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => passwords.matches(dear, 'wrong')));
    expect(outcomes.filter(({ status }) => status === 'rejected').length).toBeGreaterThanOrEqual(8);
  });

  it('takes as long to refuse whatever a hash costs, and for nobody (AUTH-9, CRED-5)', async () => {
    const level = await passwordHasher({ memoryCost: 4_096, timeCost: 1 }, Number.POSITIVE_INFINITY);
    const [own, dear] = [await level.hash('Correct-Horse-7'), await foreign(32_768, 2)];
    await level.levelWith([dear]);
    const shortest = new Map<string | null, number>();
    for (let round = 0; round < 5; round += 1) {
      for (const stored of [null, own, dear]) {
        const startedMs = performance.now();
        expect(await level.matches(stored, 'wrong')).toBe(false);
        shortest.set(stored, Math.min(shortest.get(stored) ?? Number.POSITIVE_INFINITY, performance.now() - startedMs));
      }
    }
    // Sixteen times apart, were each to cost what it costs.
    expect(Math.max(...shortest.values())).toBeLessThan(3 * Math.min(...shortest.values()));
  });
});
