import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Policy } from '../access/policy.ts';
import type { Principal } from '../access/principal.ts';
import type { Write } from '../access/reauthorization.ts';
import type { Tx } from '../db/database.ts';
import type { AllServices } from '../services.ts';
import { type AnyEndpoint, endpoint } from './endpoint.ts';
import { writerOf } from './writing.ts';

const work = async (tx: Tx): Promise<void> => expect(tx).toBeUndefined();
const common = { path: '/made-up', tag: 'Made up', summary: 'Made up', response: { 200: z.string() } } as const;
const admin = { who: 'admin', scope: 'org:admin' } as const;

/** Declarations that the compiler refuses; what it refuses stands on the line below each mark. */
const declared = [
  endpoint({
    ...common,
    method: 'POST',
    policy: admin,
    async handle({ db }) {
      // @ts-expect-error -- a handler that has a caller opens no transaction by itself
      await db.transaction(work);
      return '';
    },
  }),
  endpoint({
    ...common,
    method: 'POST',
    policy: admin,
    async handle({ db }) {
      // @ts-expect-error -- nor one that runs beside all others
      await db.note(work);
      return '';
    },
  }),
  endpoint({
    ...common,
    method: 'POST',
    policy: admin,
    async handle({ db }) {
      // @ts-expect-error -- nor one on the connection that reads
      await db.read.transaction().execute(work);
      return '';
    },
  }),
  endpoint({
    ...common,
    method: 'GET',
    policy: admin,
    async handle(_, { write }) {
      // @ts-expect-error -- what only reads is given nothing to write with
      await write(work);
      return '';
    },
  }),
  endpoint({
    ...common,
    method: 'POST',
    policy: { who: 'holder' },
    async handle({ db }) {
      // @ts-expect-error -- without a caller, the policy has to say by what the endpoint writes
      await db.transaction(work);
      return '';
    },
  }),
  endpoint({
    ...common,
    method: 'POST',
    policy: { who: 'anyone', writesBy: 'signInProof' },
    async handle(_, { write }) {
      // @ts-expect-error -- there is no caller to ask again
      await write(work);
      return '';
    },
  }),
  endpoint({
    ...common,
    method: 'POST',
    // @ts-expect-error -- an administrator does not write by something else
    policy: { who: 'admin', scope: 'org:admin', writesBy: 'link' },
    handle: async () => '',
  }),
  endpoint({
    ...common,
    method: 'POST',
    policy: admin,
    handle: async (_, { write }) => write(async () => ''),
  }),
  endpoint({
    ...common,
    method: 'POST',
    policy: { who: 'holder', writesBy: 'link' },
    handle: async ({ db }) => db.transaction(async () => ''),
  }),
];

const caller: Principal = { kind: 'session', sessionId: '1', userId: '2', orgId: '3', isAdmin: true };
const params = { id: '2' };

/** What a handler of an endpoint is given to write with, and what is done by it, in its order. */
function writing(method: AnyEndpoint['method'], policy: Policy, isStill = true) {
  const done: unknown[] = [];
  const read = { name: 'committed state' };
  const tx = { name: 'transaction' };
  const services = {
    db: {
      read,
      transaction: async (run: (given: unknown) => Promise<unknown>) => {
        done.push('begin');
        return run(tx);
      },
    },
    reauthorize: async (...asked: unknown[]) => {
      done.push(asked);
      if (!isStill) throw new Error('no longer');
      return { ...caller, isAdmin: false };
    },
  } as unknown as AllServices;
  const given: { write?: Write; reauthorize?: () => Promise<Principal> } | undefined = writerOf(
    { method, policy },
    () => services,
  )?.({ caller, params });
  return { given, done, read, tx };
}

describe('what an endpoint writes with', () => {
  it('the compiler refuses the declarations that write without it', () => {
    expect(declared).toHaveLength(9);
  });

  it('one transaction, which begins by asking the policy of the endpoint again (AUTH-27, STORE-7)', async () => {
    const { given, done, tx } = writing('POST', admin);
    await given?.write?.(async (...inside) => void done.push(inside));
    expect(done).toEqual(['begin', [tx, caller, { policy: admin, params }], [tx, { ...caller, isAdmin: false }]]);
  });

  it('nothing is done where the caller may no longer', async () => {
    const { given, done } = writing('DELETE', admin, false);
    await expect(given?.write?.(async (...inside) => void done.push(inside))).rejects.toThrow('no longer');
    expect(done).toHaveLength(2);
  });

  it('what only reads for the sake of a body asks on the committed state', async () => {
    const { given, done, read } = writing('POST', { who: 'member', anyScope: true });
    expect(await given?.reauthorize?.()).toEqual({ ...caller, isAdmin: false });
    expect(done).toEqual([[read, caller, { policy: { who: 'member', anyScope: true }, params }]]);
  });

  it('nothing, for what only reads and for what has no user as its caller', () => {
    expect(writing('GET', admin).given).toBeUndefined();
    for (const who of ['anyone', 'holder'] as const) expect(writing('POST', { who }).given).toBeUndefined();
    expect(writing('POST', { who: 'service', scope: 'FETCH_CONFIG' }).given).toBeUndefined();
  });
});
