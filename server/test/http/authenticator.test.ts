import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { authenticator } from '../../src/access/authenticator.ts';
import { readBearer, unauthorized } from '../../src/access/bearer.ts';
import type { CredentialRecord, Principal } from '../../src/access/principal.ts';
import { type CredentialHash, hashCredential } from '../../src/base/secret.ts';
import type { Database } from '../../src/db/database.ts';
import { findSession } from '../../src/features/sessions/public.ts';
import { findToken } from '../../src/features/tokens/public.ts';
import { nextTurn, secondConnection } from '../support/second-connection.ts';
import { type Client, TestApp, type TokenClient } from '../support/test-app.ts';

type Authenticate = (header: string) => Promise<Principal>;
type Find = (hash: CredentialHash) => Promise<CredentialRecord | null>;
/** Makes an authenticator that looks credentials up with `find`: the real one, or one with a fault built in. */
type Make = (find: Find) => Authenticate;

let app: TestApp;
let admin: Client;
let token: TokenClient;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());
beforeEach(async () => {
  token = await admin.token();
});

const header = ({ credential }: Client) => `Bearer ${credential}`;
const realFind: Find = async (hash) => (await findToken(app.services, hash)) ?? findSession(app.services, hash);
const nothing = () => {};
const made = (
  db: Pick<Database, 'dataVersion' | 'refreshVersion'>,
  find: Find,
  onTokenUse: (id: string) => void = nothing,
): Authenticate => {
  return authenticator({
    db,
    clock: app.clock,
    displayPrefixes: () => ['lkpat_'],
    find: [async () => null, find],
    onTokenUse,
  });
};
const real: Make = (find) => made(app.services.db, find);

/** Keeps what it found and never asks whether anything was committed since. */
const deafTwin: Make = (find) => made({ refreshVersion: () => null, dataVersion: () => 1 }, find);

/** Clears what it kept at each commit, and then keeps the answer of a look-up that had begun before it. */
const lateTwin: Make = (find) => {
  const kept = new Map<CredentialHash, CredentialRecord>();
  let mark: number | null = null;
  return async (given) => {
    await app.services.db.refreshVersion();
    const now = app.services.db.dataVersion();
    if (now !== mark) kept.clear();
    mark = now;
    const hash = hashCredential(readBearer(given, ['lkpat_']));
    const held = kept.get(hash) ?? (await find(hash));
    if (held?.invalidReason !== null) throw unauthorized.invalid();
    kept.set(hash, held);
    return held.principal;
  };
};

const outcome = async (proof: Promise<unknown>) => {
  try {
    await proof;
    return 'accepted';
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error;
  }
};

/**
 * Holds a look-up between reading and caching; meanwhile the token is revoked and another call is made. Returns the
 * results of the held call and of the next one.
 */
async function staleFill(make: Make): Promise<unknown[]> {
  let release = nothing;
  let reached = nothing;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const atGate = new Promise<void>((resolve) => {
    reached = resolve;
  });
  let isFirst = true;
  const authenticate = make(async (hash) => {
    const held = await realFind(hash);
    if (!isFirst) return held;
    isFirst = false;
    reached();
    await gate;
    return held;
  });
  const underWay = outcome(authenticate(header(token)));
  await atGate;
  expect((await admin.delete(`/personal-access-tokens/${token.tokenId}`)).status).toBe(200);
  await authenticate(header(admin));
  release();
  return [await underWay, await outcome(authenticate(header(token)))];
}

/** A token that was just used is revoked. Answers what the next call got. */
async function usedThenRevoked(make: Make, revoke: () => Promise<unknown>): Promise<unknown[]> {
  const authenticate = make(realFind);
  const before = [await outcome(authenticate(header(token))), await outcome(authenticate(header(token)))];
  await revoke();
  return [...before, await outcome(authenticate(header(token)))];
}

const overHttp = () => admin.delete(`/personal-access-tokens/${token.tokenId}`);
const byAnotherProcess = async () => {
  const connection = secondConnection(app);
  connection.prepare('UPDATE personal_access_tokens SET revoked_at = 1 WHERE id = ?').run(token.tokenId);
  connection.close();
  await nextTurn();
};

describe('authenticator: what it keeps and what ends meanwhile', () => {
  it('drops a look-up that began before a revocation and ended after it (AUTH-27)', async () => {
    expect(await staleFill(real)).toEqual(['accepted', 'TOKEN_REVOKED']);
  });

  it('forgets a verification as soon as anyone revokes (AUTH-27)', async () => {
    expect(await usedThenRevoked(real, overHttp)).toEqual(['accepted', 'accepted', 'TOKEN_REVOKED']);
    token = await admin.token();
    expect(await usedThenRevoked(real, byAnotherProcess)).toEqual(['accepted', 'accepted', 'TOKEN_REVOKED']);
  });

  it('these very checks catch an authenticator that ignores commits', async () => {
    expect(await staleFill(deafTwin)).toEqual(['accepted', 'accepted']);
    token = await admin.token();
    expect(await usedThenRevoked(deafTwin, overHttp)).toEqual(['accepted', 'accepted', 'accepted']);
    token = await admin.token();
    expect(await usedThenRevoked(deafTwin, byAnotherProcess)).toEqual(['accepted', 'accepted', 'accepted']);
  });

  it('these very checks catch an authenticator that stamps when it keeps, not when it looks', async () => {
    expect(await usedThenRevoked(lateTwin, overHttp)).toEqual(['accepted', 'accepted', 'TOKEN_INVALID']);
    token = await admin.token();
    expect(await staleFill(lateTwin)).toEqual(['accepted', 'accepted']);
  });
});

describe('authenticator', () => {
  it('looks nothing up twice while nothing is committed, and everything again afterwards', async () => {
    const hashes: CredentialHash[] = [];
    const authenticate = real((hash) => {
      hashes.push(hash);
      return realFind(hash);
    });
    for (let call = 0; call < 10; call += 1) await authenticate(header(token));
    expect(hashes).toHaveLength(1);
    await admin.token();
    await authenticate(header(token));
    expect(hashes).toHaveLength(2);
  });

  it('waits, where the engine has to be asked, until it was told whether anything was committed', async () => {
    const asked = { mark: 1, told: 1 };
    const db = {
      refreshVersion: async () => {
        await new Promise(setImmediate);
        asked.told = asked.mark;
      },
      dataVersion: () => asked.told,
    };
    let lookUps = 0;
    const authenticate = made(db, (hash) => {
      lookUps += 1;
      return realFind(hash);
    });
    for (let call = 0; call < 3; call += 1) await authenticate(header(token));
    asked.mark = 2;
    await authenticate(header(token));
    expect(lookUps).toBe(2);
  });

  it('accepts no one where the engine does not tell', async () => {
    const refusing = made({ refreshVersion: () => Promise.reject(new Error('gone')), dataVersion: () => 1 }, realFind);
    await expect(refusing(header(token))).rejects.toThrow('gone');
  });

  it('keeps no refusal: unknown and ended credentials are looked up each time', async () => {
    await overHttp();
    let lookUps = 0;
    const authenticate = real((hash) => {
      lookUps += 1;
      return realFind(hash);
    });
    for (let call = 0; call < 3; call += 1) {
      expect(await outcome(authenticate(header(token)))).toBe('TOKEN_REVOKED');
      expect(await outcome(authenticate('Bearer unknown'))).toBe('TOKEN_INVALID');
    }
    expect(lookUps).toBe(6);
  });

  it('tells of each use of a token that it accepts, and of nothing else (PAT-30)', async () => {
    const uses: string[] = [];
    const authenticate = made(app.services.db, realFind, (id) => void uses.push(id));
    await authenticate(header(token));
    await authenticate(header(token));
    await authenticate(header(admin));
    await overHttp();
    expect(await outcome(authenticate(header(token)))).toBe('TOKEN_REVOKED');
    expect(uses).toEqual([token.tokenId, token.tokenId]);
  });

  it('takes each header for what it says, whatever came over the connection before (AUTH-25)', async () => {
    const authenticate = real(realFind);
    const member = await app.member(admin, 'grace@example.com');
    const theirs = await member.token();
    for (const caller of [token, theirs, admin, token, member, theirs]) {
      expect((await authenticate(header(caller))).userId).toBe(caller.userId);
      expect(await outcome(authenticate(`${header(caller)}x`))).toBe('TOKEN_INVALID');
      expect(await outcome(authenticate('Bearer'))).toBe('UNAUTHORIZED');
    }
  });

  it('lets no one in when the store fails (STORE-12)', async () => {
    const broken = real(() => Promise.reject(new Error('disk I/O error')));
    expect(await outcome(broken(header(token)))).toEqual(new Error('disk I/O error'));
  });
});
