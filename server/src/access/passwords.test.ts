import { hash } from '@node-rs/argon2';
import { beforeAll, describe, expect, it } from 'vitest';
import { ApiError } from '../base/errors.ts';
import { isVerifiable, type PasswordHasher, passwordHasher } from './passwords.ts';

describe('passwordHasher', () => {
  let passwords: PasswordHasher;
  beforeAll(async () => {
    // However busy the machine is: what a wait leads to has a test of its own.
    passwords = await passwordHasher(undefined, { waitMsMax: Number.POSITIVE_INFINITY });
  });

  it('hashes with argon2id at the recommended cost, salted (PASSWORD-4)', async () => {
    const [one, other] = await Promise.all([passwords.hash('Marble-Kettle-7'), passwords.hash('Marble-Kettle-7')]);
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(one).not.toBe(other);
    expect(await passwords.matches(one, 'Marble-Kettle-7')).toBe(true);
    expect(await passwords.matches(one, 'marble-Kettle-7')).toBe(false);
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

  it('matches nothing for no one, and works as long on it (AUTH-9)', async () => {
    const known = await passwords.hash('Marble-Kettle-7');
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
    const outcomes = await Promise.allSettled(Array.from({ length: 80 }, () => passwords.hash('Marble-Kettle-7')));
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.length).toBeGreaterThanOrEqual(14);
    expect(refused.length).toBeLessThanOrEqual(16);
    for (const { reason } of refused) {
      expect(reason).toBeInstanceOf(ApiError);
      expect(reason).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    }
    expect(await passwords.hash('Marble-Kettle-7')).toMatch(/^\$argon2id/);
  });

  const cheap = { memoryCost: 64, timeCost: 1 };
  /** A hash as another system made it. */
  const foreign = (memoryCost: number, timeCost: number) =>
    hash('Marble-Kettle-7', { algorithm: 2, memoryCost, timeCost, parallelism: 1 });
  const said = (memory: number, passes: number, lanes = 1) =>
    `$argon2id$v=19$m=${memory},t=${passes},p=${lanes}$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g`;

  it('refuses those whose turn comes too late (CRED-5)', async () => {
    const impatient = await passwordHasher(cheap, { waitMsMax: 0 });
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => impatient.hash('Marble-Kettle-7')));
    expect(outcomes.at(-1)).toMatchObject({ status: 'rejected', reason: { status: 503 } });
  });

  it('bounds those who wait by what their hashes cost, not by their number alone (CRED-5)', async () => {
    const dear = await foreign(1_024, 4);
    const bounded = await passwordHasher(cheap, { workMax: 2 * 4_096, waitMsMax: Number.POSITIVE_INFINITY });
    await bounded.levelWith([dear]);
    const outcomes = await Promise.allSettled([1, 2, 3, 4].map(() => bounded.matches(dear, 'Marble-Kettle-7')));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected']);
    expect(await bounded.matches(dear, 'Marble-Kettle-7')).toBe(true);
  });

  it('checks hashes of other systems within bounds, and no others (CRED-5)', async () => {
    const hasher = await passwordHasher(cheap, { waitMsMax: Number.POSITIVE_INFINITY });
    expect(await hasher.matches(await foreign(4_096, 3), 'Marble-Kettle-7')).toBe(true);
    for (const within of [said(65_536, 3, 4), said(65_536, 4), said(8, 1), said(19_456, 2)]) {
      expect([within, isVerifiable(within)]).toEqual([within, true]);
    }
    const beyond = [said(65_544, 1), said(65_536, 5), said(8_192, 33), said(262_144, 1), said(65_536, 1, 17)];
    const senseless = [
      '',
      said(8, 0),
      said(8, 1, 0),
      said(8, 1, 2),
      said(1e7, 1),
      '$2b$10$x',
      said(8, 1).replace('id', 'i'),
    ];
    for (const wrong of [...beyond, ...senseless]) {
      expect([wrong, isVerifiable(wrong), await hasher.matches(wrong, 'Marble-Kettle-7')]).toEqual([
        wrong,
        false,
        false,
      ]);
    }
  });

  it('takes as long to refuse whatever a hash costs, and for no one (AUTH-9, CRED-5)', async () => {
    const level = await passwordHasher({ memoryCost: 1_024, timeCost: 1 }, { waitMsMax: Number.POSITIVE_INFINITY });
    const [own, dear] = [await level.hash('Marble-Kettle-7'), await foreign(16_384, 2)];
    await level.levelWith([dear]);
    const shortest = new Map<string | null, number>();
    for (let round = 0; round < 7; round += 1) {
      for (const stored of [null, own, dear]) {
        const startedMs = performance.now();
        expect(await level.matches(stored, 'wrong')).toBe(false);
        shortest.set(stored, Math.min(shortest.get(stored) ?? Number.POSITIVE_INFINITY, performance.now() - startedMs));
      }
    }
    // Thirty-two times apart, were each to cost what it costs.
    expect(Math.max(...shortest.values())).toBeLessThan(4 * Math.min(...shortest.values()));
  });
});
