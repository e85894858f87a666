import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secondConnection } from './second-connection.ts';
import { type Client, TestApp, type TokenClient } from './test-app.ts';

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
  await expect.poll(() => calls.length, { timeout: 10_000, interval: 1 }).toBeGreaterThan(0);
  await act();
  doneMs = performance.now();
  await Promise.all(workers);
  return { calls, doneMs };
}

function expectCut({ calls, doneMs }: Awaited<ReturnType<typeof throughout>>): void {
  const after = calls.filter(({ startedMs }) => startedMs > doneMs);
  expect(after.length).toBeGreaterThanOrEqual(inFlight);
  expect(after.filter(({ status }) => status !== 401)).toEqual([]);
  expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([200, 401]));
}

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
    expectCut(
      await throughout([token, child], async () => {
        expect((await admin.delete(`${path}/${token.tokenId}`)).status).toBe(200);
      }),
    );
  });

  it('401 likewise when another process revokes it (AUTH-27)', async () => {
    const token = await admin.token();
    const connection = secondConnection(app);
    const revoke = connection.prepare('UPDATE personal_access_tokens SET revoked_at = ? WHERE id = ?');
    expectCut(await throughout([token], () => void revoke.run(app.clock.now(), token.tokenId)));
    connection.close();
  });

  it('401 likewise for a session that is logged out (AUTH-18, AUTH-27)', async () => {
    const session = await app.signIn('ada@example.com');
    expectCut(
      await throughout([session], async () => {
        expect((await session.post('/userAccount/logout/manual')).status).toBe(200);
      }),
    );
  });

  it('401 likewise when the owner is deleted, for token and session (AUTH-24, AUTH-27)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const token = await member.token();
    expectCut(await throughout([member, token], () => app.deleteUser(member.userId)));
  });

  it('401 at the very next request, hundreds of times over, when another process revokes (AUTH-27)', async () => {
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

  const minting = (maker: Client, count: number) =>
    Array.from({ length: count }, () => maker.post(path, { name: 'x', expiryDays: 'never' }));

  it('no token outlives the one that made it, however close the revocation (SCOPE-24)', async () => {
    for (let round = 0; round < 10; round += 1) {
      const maker: TokenClient = await admin.token();
      const answers = minting(maker, 10);
      const revoked = admin.delete(`${path}/${maker.tokenId}`);
      const made = (await Promise.all(answers)).filter(({ status }) => status === 201);
      expect((await revoked).status).toBe(200);
      const live = await Promise.all(made.map(({ body }) => app.with(body.token.accessToken).get('/org')));
      expect(live.map(({ status }) => status)).toEqual(live.map(() => 401));
    }
  });

  it('nothing of a deleted person is made after the deletion (STORE-7)', async () => {
    const leaving = await app.member(admin, 'leaving@example.com');
    const token = await leaving.token();
    const answers = [...minting(leaving, 30), ...minting(token, 30)];
    await app.deleteUser(leaving.userId);
    const countMade = async () => {
      const { body } = await admin.get(`${path}/admin?status=all&userId=${leaving.userId}`);
      return body.pagination.total;
    };
    const madeByThen = await countMade();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(await countMade()).toBe(madeByThen);
    expect(statuses.filter((status) => status === 201).length).toBe(madeByThen - 1);
    expect(statuses.filter((status) => status !== 201 && status !== 401)).toEqual([]);
  });
});
