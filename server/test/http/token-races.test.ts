import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secondConnection } from '../support/second-connection.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const path = '/personal-access-tokens';
const inFlight = 200;

interface Call {
  readonly startedMs: number;
  readonly status: number;
}

/**
 * Keeps 200 requests in flight, shared by the clients, while `act` happens, and begins 200 more after it. Answers the
 * requests, and when `act` was over.
 */
async function throughout(clients: readonly Client[], act: () => Promise<void> | void) {
  const calls: Call[] = [];
  let doneMs = Number.POSITIVE_INFINITY;
  let after = 0;
  const worker = async (client: Client) => {
    while (after < inFlight) {
      const startedMs = performance.now();
      if (startedMs > doneMs) after += 1;
      const { status } = await client.get('/org');
      calls.push({ startedMs, status });
    }
  };
  const workers = clients.flatMap((client) => Array.from({ length: inFlight / clients.length }, () => worker(client)));
  await expect.poll(() => calls.length, { timeout: 15_000, interval: 1 }).toBeGreaterThan(0);
  await act();
  doneMs = performance.now();
  await Promise.all(workers);
  return { calls, doneMs };
}

/** Returns the requests begun after `act` was over that still succeeded, and whether there was anything to cut. */
function cut({ calls, doneMs }: Awaited<ReturnType<typeof throughout>>) {
  const after = calls.filter(({ startedMs }) => startedMs > doneMs);
  return {
    all: new Set(calls.map(({ status }) => status)),
    after: new Set(after.map(({ status }) => status)),
    isEnough: after.length >= inFlight,
  };
}
const clean = { all: new Set([200, 401]), after: new Set([401]), isEnough: true };

describe('credentials that end while they are in use', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('401 for every request begun after the DELETE was answered, by the token and by its child (AUTH-27, PAT-16, SCOPE-24)', async () => {
    const token = await admin.token();
    const child = await token.token();
    const outcome = await throughout([token, child], async () => {
      expect((await admin.delete(`${path}/${token.tokenId}`)).status).toBe(200);
    });
    expect(cut(outcome)).toEqual(clean);
  });

  it('401 likewise when another process revokes it (AUTH-27)', async () => {
    const token = await admin.token();
    const connection = secondConnection(app);
    const revoke = connection.prepare('UPDATE personal_access_tokens SET revoked_at = ? WHERE id = ?');
    const outcome = await throughout([token], async () => {
      revoke.run(app.clock.now(), token.tokenId);
    });
    expect(cut(outcome)).toEqual(clean);
    connection.close();
  });

  it('401 likewise for a session that is logged out (AUTH-18, AUTH-27)', async () => {
    const session = await app.signIn('ada@example.com');
    const outcome = await throughout([session], async () => {
      expect((await session.post('/userAccount/logout/manual')).status).toBe(200);
    });
    expect(cut(outcome)).toEqual(clean);
  });

  it('401 likewise when the owner is deleted, for token and session (AUTH-24, AUTH-27)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const token = await member.token();
    expect(cut(await throughout([member, token], () => app.deleteUser(member.userId)))).toEqual(clean);
  });

  it('401 from then on, hundreds of times over, once another process has revoked (AUTH-27)', async () => {
    const connection = secondConnection(app);
    const set = connection.prepare('UPDATE personal_access_tokens SET revoked_at = ? WHERE id = ?');
    const token = await admin.token();
    const statuses = new Set<string>();
    for (let round = 0; round < 200; round += 1) {
      set.run(1, token.tokenId);
      const after = await token.get('/org');
      set.run(null, token.tokenId);
      const again = await token.get('/org');
      statuses.add(`${after.status} ${again.status}`);
    }
    expect(statuses).toEqual(new Set(['401 200']));
    connection.close();
  });
});

describe('things made while the maker ends', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const countMade = async () => (await admin.get(`${path}/admin?status=all`)).body.pagination.total as number;

  /** Holds the maker's request after the maker was proved and before anything is written; meanwhile `act` happens. */
  async function issueAround(maker: Client, act: () => Promise<unknown>) {
    const { keys } = app.services;
    const { sign } = keys;
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isHeld = false;
    keys.sign = async (claims) => {
      isHeld = true;
      await gate;
      return sign(claims);
    };
    const response = maker.post(path, { name: 'late', expiryDays: 'never' });
    await expect.poll(() => isHeld, { timeout: 15_000, interval: 1 }).toBe(true);
    keys.sign = sign;
    await act();
    const before = await countMade();
    release();
    return { answer: await response, made: (await countMade()) - before };
  }

  it('201 where nothing ends meanwhile: the gate itself changes nothing', async () => {
    const { answer: response, made } = await issueAround(admin, () => admin.get('/org'));
    expect([response.status, made]).toEqual([201, 1]);
  });

  it('401, and nothing is made, by a token that is revoked meanwhile (SCOPE-24, STORE-7)', async () => {
    const maker = await admin.token();
    const { answer: response, made } = await issueAround(maker, () => admin.delete(`${path}/${maker.tokenId}`));
    expect([response.status, response.body.error?.code, made]).toEqual([401, 'TOKEN_REVOKED', 0]);
  });

  it('401, and nothing is made, by a token whose parent is revoked meanwhile (SCOPE-24)', async () => {
    const parent = await admin.token();
    const maker = await parent.token();
    const { answer: response, made } = await issueAround(maker, () => admin.delete(`${path}/${parent.tokenId}`));
    expect([response.status, made]).toEqual([401, 0]);
  });

  it('401, and nothing is made, by a session that is logged out meanwhile (AUTH-18)', async () => {
    const session = await app.signIn('ada@example.com');
    const { answer: response, made } = await issueAround(session, () => session.post('/userAccount/logout/manual'));
    expect([response.status, made]).toEqual([401, 0]);
  });

  it('401, and nothing is made, for a person who is deleted meanwhile, by session and by token (STORE-7)', async () => {
    for (const [place, kind] of ['session', 'token'].entries()) {
      const leaving = await app.member(admin, `leaving-${place}@example.com`);
      const maker = kind === 'session' ? leaving : await leaving.token();
      const { answer: response, made } = await issueAround(maker, () => app.deleteUser(leaving.userId));
      expect([kind, response.status, made]).toEqual([kind, 401, 0]);
    }
  });

  it('no token outlives the one that made it, however close the revocation (SCOPE-24)', async () => {
    for (let round = 0; round < 10; round += 1) {
      const maker = await admin.token();
      const responses = Array.from({ length: 10 }, () => maker.post(path, { name: 'x', expiryDays: 'never' }));
      const revoked = admin.delete(`${path}/${maker.tokenId}`);
      const made = (await Promise.all(responses)).filter(({ status }) => status === 201);
      expect((await revoked).status).toBe(200);
      const live = await Promise.all(made.map(({ body }) => app.with(body.token.accessToken).get('/org')));
      expect(live.map(({ status }) => status)).toEqual(live.map(() => 401));
    }
  });
});
