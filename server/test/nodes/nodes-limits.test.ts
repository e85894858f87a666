import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { day, minute, second } from '../../src/base/clock.ts';
import { ApiError } from '../../src/base/errors.ts';
import { countsInMemory, type LimitCounts } from '../../src/limits/limit-counts.ts';
import { countsInStore, pruneLimits } from '../../src/limits/limit-sharing.ts';
import { allowanceOf, type Limits, limits } from '../../src/limits/limits.ts';
import { type SignInAttempt, type SignInLimits, signInLimits } from '../../src/limits/sign-in-limits.ts';
import { tries } from '../support/effort.ts';
import { MailServer } from '../support/mail-server.ts';
import { forget } from '../support/recovery.ts';
import type { TestApp } from '../support/test-app.ts';
import { TestClock } from '../support/test-clock.ts';
import { insist, TwoNodes } from '../support/two-nodes.ts';

const email = 'ada@example.com';
const wrong = 'Wrong-Horse-7!';

describe('two nodes: limits', () => {
  let nodes: TwoNodes;
  beforeAll(async () => {
    nodes = await TwoNodes.start({ RATE_LIMIT: 'on' });
    await nodes.a.setUp();
  });
  afterAll(() => nodes.close());
  beforeEach(() => nodes.a.clock.advance(day));

  const statusOf = async (node: TestApp, password: string) =>
    (
      await insist(
        () => node.signInTokens(email, password),
        ({ status }) => status,
      )
    ).status;
  const rows = () => nodes.a.services.db.read.selectFrom('limit_counts').selectAll().execute();

  it('429: wrong passwords at one node count at the other; the right one forgets them at both (AUTH-43, NODE-4)', async () => {
    const { a, b } = nodes;
    for (const node of [a, b, a, b, a]) expect(await statusOf(node, wrong)).toBe(401);
    for (const node of nodes.both) expect(await statusOf(node, wrong)).toBe(429);
    const blocked = await b.signInTokens(email);
    expect(blocked.status).toBe(429);
    expect(blocked.text).toContain('[blockedUntil:');
    a.clock.advance(second);
    expect(await statusOf(b, wrong)).toBe(401);
    a.clock.advance(2 * second);
    expect(await statusOf(a, 'Marble-Kettle-7')).toBe(200);
    for (const node of [b, a, b, a]) expect(await statusOf(node, wrong)).toBe(401);
  });

  it('429: many wrong passwords at both nodes at the same moment get no more tries than in a row (AUTH-43, NODE-4)', async () => {
    const tries = Array.from({ length: 30 }, (_, place) => statusOf(place % 2 === 0 ? nodes.a : nodes.b, wrong));
    const statuses = await Promise.all(tries);
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(25);
  });

  it('429: what a person makes at one node counts at the other, and anyone who goes on writes nothing (NODE-4)', async () => {
    const { a, b } = nodes;
    const admin = await a.signIn(email);
    const make = (node: TestApp, name: string) => node.with(admin.credential).post('/teams', { name });
    const each = allowanceOf('team') / 2;
    for (let team = 0; team < each; team += 1) {
      const made = await Promise.all([make(a, `a ${team}`), make(b, `b ${team}`)]);
      expect(made.map(({ status }) => status)).toEqual([201, 201]);
    }
    for (const node of nodes.both) expect((await make(node, 'one more')).status).toBe(429);
    const before = await rows();
    for (const node of nodes.both) expect((await make(node, 'one more')).status).toBe(429);
    expect(await rows()).toEqual(before);
    a.clock.advance(minute);
    expect((await make(b, 'later')).status).toBe(201);
  });

  it('neither a good nor a bad credential writes anything (NODE-4)', async () => {
    const { a, b } = nodes;
    const token = await (await a.signIn(email)).token();
    const stored = async () => {
      await a.services.db.refreshVersion();
      return [a.services.db.dataVersion(), await rows()];
    };
    const before = await stored();
    for (let call = 0; call < 20; call += 1) {
      expect((await b.with(`${token.credential}x`).get('/org')).status).toBe(401);
    }
    expect(await stored()).toEqual(before);
  });

  it('nothing in the store tells who tried to sign in, and from where (NODE-4)', async () => {
    await statusOf(nodes.a, wrong);
    const stored = JSON.stringify(await rows());
    expect(stored).not.toContain(email);
    expect(stored).not.toContain('127.0.0.1');
    expect(await rows()).not.toEqual([]);
  });

  it('what holds no one back any more is removed (NODE-4)', async () => {
    const { a } = nodes;
    await statusOf(a, wrong);
    const { db, clock, afterResponse } = a.services;
    // That a sign-in was refused is recorded behind the answer, and counted there.
    await afterResponse.close();
    await pruneLimits(db, clock.now());
    const count = (await rows()).length;
    expect(count).toBeGreaterThan(0);
    a.clock.advance(day);
    expect(await pruneLimits(db, clock.now())).toBe(count);
    expect(await rows()).toEqual([]);
  });
});

describe('two nodes: recovery mails', () => {
  it('someone gets no more of them from two nodes than from one (PASSWORD-8, NODE-4)', async () => {
    const mails = await MailServer.start();
    const nodes = await TwoNodes.start({ RATE_LIMIT: 'on', SMTP_URL: mails.url, MAIL_FROM: 'no-reply@latchkey.test' });
    try {
      await nodes.a.setUp();
      const asked = [nodes.a, nodes.b, nodes.a];
      for (const [before, node] of asked.entries()) {
        expect((await forget(node, email)).status).toBe(200);
        await vi.waitUntil(() => mails.mailsTo(email).length > before, { timeout: 10_000 });
      }
      for (const node of nodes.both) {
        expect((await forget(node, email)).status).toBe(200);
        await node.services.afterResponse.close();
      }
      expect(mails.mailsTo(email)).toHaveLength(3);
    } finally {
      await nodes.close();
      await mails.stop();
    }
  });
});

/** Limits, and the tries that have not ended. */
interface Side {
  readonly limits: Limits & SignInLimits;
  readonly open: SignInAttempt[];
}

interface Who {
  readonly email: string;
  readonly network: string;
  readonly isKnown: boolean;
}

/** Acts on an account from a network. */
const acts: Readonly<Record<string, (side: Side, who: Who) => Promise<unknown>>> = {
  try: async ({ limits, open }, { isKnown, ...who }) => {
    const attempt = await limits.trySignIn({ ...who, isKnown: async () => isKnown });
    open.push(attempt);
    return (await attempt.failed())?.message;
  },
  right: async ({ open }) => open.shift()?.succeeded(),
  undecided: async ({ open }) => open.pop()?.undecided(),
  forgive: ({ limits }, { email, network }) => limits.forgive(email, network),
  clear: ({ limits }, { email }) => limits.clearSlowDown(email),
  mail: ({ limits }, { email, network }) => limits.tryCount('codeMail', network, email),
};
const act = fc.record({
  node: fc.constantFrom(0, 1),
  // What is tried again and again is what is held back.
  what: fc.constantFrom('try', 'try', 'try', 'try', 'try', 'try', ...Object.keys(acts)),
  who: fc.record({
    email: fc.constantFrom('ada@example.com', 'ada@example.com', 'grace@example.com'),
    network: fc.integer({ min: 1, max: 9 }).map((last) => `10.0.0.${last}`),
    isKnown: fc.boolean(),
  }),
  // A clock may go back.
  waitMs: fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: -20 * minute, max: 20 * minute })),
});

describe('counts of all nodes', () => {
  let nodes: TwoNodes;
  beforeAll(async () => {
    nodes = await TwoNodes.start();
  });
  afterAll(() => nodes.close());

  const outcome = async (work: Promise<unknown>) => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof ApiError) return [error.errorName, error.message, error.headers];
      throw error;
    }
  };

  it('two nodes together hold back exactly as one process does, whatever is done where (AUTH-43, NODE-4)', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 5, maxLength: 60, size: 'max' }), async (done) => {
        const clock = new TestClock();
        const { db } = nodes.a.services;
        await db.transaction((tx) => tx.deleteFrom('limit_counts').execute());
        const made = (counts: LimitCounts, open: SignInAttempt[] = []): Side => {
          const parts = { isOn: () => true, clock, counts, heldBackMs: 0 };
          return { limits: { ...limits(parts), ...signInLimits(parts) }, open };
        };
        const alone = made(countsInMemory());
        // A try that began at one node may end at the other.
        const open: SignInAttempt[] = [];
        const shared = nodes.both.map(({ services }) => made(countsInStore(services.db, allowanceOf), open));
        for (const { node, what, who, waitMs } of done) {
          clock.advance(waitMs);
          const [here, does] = [shared[node], acts[what]];
          if (!here || !does) throw new Error('there is no such act');
          expect(await outcome(does(here, who))).toEqual(await outcome(does(alone, who)));
        }
      }),
      { numRuns: tries(40, 8) },
    );
  });
});
