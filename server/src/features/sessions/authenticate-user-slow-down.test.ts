import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { attemptSignIn } from '../../../test/support/sign-in.ts';
import { password, TestApp, type TestResponse } from '../../../test/support/test-app.ts';
import { clearSlowDown } from '../sign-in/public.ts';

const email = 'ada@example.com';
const minute = 60_000;

function seconds(response: TestResponse): number {
  return Number(response.headers.get('retry-after'));
}

describe('failed sign-ins slow further ones down', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await TestApp.start({ RATE_LIMIT: 'on', TRUST_PROXY: '127.0.0.1' });
    await app.setUp();
  });
  afterEach(() => app.close());

  function from(address: string, given = 'Wrong-Horse-7', user = email): Promise<TestResponse> {
    return attemptSignIn(app, { email: user, password: given, headers: { 'x-forwarded-for': address } });
  }

  async function failTimes(count: number, address: string, user = email): Promise<void> {
    for (let done = 0; done < count; done += 1) {
      expect((await from(address, 'Wrong-Horse-7', user)).status).toBe(401);
    }
  }

  it('429: the text says until when, Retry-After how long, and then the next try is let through (AUTH-44, ERR-24)', async () => {
    await failTimes(5, '198.51.100.7');
    // Also for the right password: nothing is learned while one waits.
    const refused = await from('198.51.100.7', password);
    const until = new Date(app.clock.now() + 1_000).toISOString();
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'RATE_LIMITED' } } });
    expect(refused.body.message).toContain(`[blockedUntil:${until}]`);
    expect(seconds(refused)).toBe(1);
    expect(refused.headers.get('ratelimit-limit')).toBe('5');
    expect(refused.headers.get('ratelimit-remaining')).toBe('0');
    expect(refused.headers.get('ratelimit-reset')).toBe('1');
    app.clock.advance(999);
    expect((await from('198.51.100.7', password)).status).toBe(429);
    app.clock.advance(1);
    expect((await from('198.51.100.7', password)).status).toBe(200);
  });

  it('429: twice as long each time, up to 15 minutes (AUTH-43)', async () => {
    await failTimes(5, '198.51.100.7');
    const waits: number[] = [];
    for (let round = 0; round < 13; round += 1) {
      const refused = await from('198.51.100.7');
      expect(refused.status).toBe(429);
      waits.push(seconds(refused));
      app.clock.advance(seconds(refused) * 1_000);
      await failTimes(1, '198.51.100.7');
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
  });

  it('200: a stranger on another network locks no one out (AUTH-43)', async () => {
    await failTimes(5, '198.51.100.7');
    expect((await from('198.51.100.7', password)).status).toBe(429);
    expect((await from('203.0.113.9', password)).status).toBe(200);
    // Success elsewhere forgives nothing here.
    expect((await from('198.51.100.7', password)).status).toBe(429);
  });

  it('429: unknown people are slowed down alike, so that nothing tells them apart (AUTH-9, AUTH-43)', async () => {
    await failTimes(5, '198.51.100.7', 'nobody@example.com');
    const unknown = await from('198.51.100.7', password, 'nobody@example.com');
    await failTimes(5, '198.51.100.8');
    const known = await from('198.51.100.8', password);
    expect(unknown.status).toBe(429);
    expect(unknown.body.message).toBe(known.body.message);
  });

  it('200: success forgets, and so does an hour without a failure (AUTH-43)', async () => {
    await failTimes(4, '198.51.100.7');
    expect((await from('198.51.100.7', password)).status).toBe(200);
    await failTimes(4, '198.51.100.7');
    app.clock.advance(60 * minute);
    await failTimes(4, '198.51.100.7');
    expect((await from('198.51.100.7', password)).status).toBe(200);
  });

  it('429: a network that tries many accounts waits as a whole; the /64 of IPv6 is one network (AUTH-43)', async () => {
    for (let user = 0; user < 50; user += 1) {
      await failTimes(1, `2001:db8:0:7::${user + 1}`, `guess${user}@example.com`);
    }
    expect((await from('2001:db8:0:7:ffff::1', password)).status).toBe(429);
    expect((await from('2001:db8:0:8::1', password)).status).toBe(200);
  });

  it('429: ports and brackets make no other network, and what is no address is the proxy (CONFIG-16)', async () => {
    const forms = [
      (place: number) => `198.51.100.7:${1_024 + place}`,
      (place: number) => `[2001:db8:0:7::${place + 1}]:443`,
      (place: number) => `not-an-address-${place}`,
    ];
    for (const [which, form] of forms.entries()) {
      const user = `forms${which}@example.com`;
      for (let place = 0; place < 5; place += 1) await failTimes(1, form(place), user);
      expect((await from(form(99), password, user)).status, form(99)).toBe(429);
    }
  });

  it('429: from many networks the account waits as a whole, as one does that is not there (AUTH-9, AUTH-70)', async () => {
    const other = 'nobody@example.com';
    const address = (place: number) => (place % 2 === 0 ? `198.51.100.${place + 1}` : `2001:db8:0:${place}::1`);
    for (const user of [email, other]) {
      for (let place = 0; place < 20; place += 1) await failTimes(1, address(place), user);
    }
    const [known, unknown] = [await from('203.0.113.9', password), await from('203.0.113.9', password, other)];
    expect([known.status, unknown.status]).toEqual([429, 429]);
    expect(known.body.message).toBe(unknown.body.message);
    const until = new Date(app.clock.now() + 1_000).toISOString();
    expect(known.body.message).toContain(`blocked until ${until} [blockedUntil:${until}]`);
  });

  it('200: where the account signed in during the last 90 days it does not wait; nothing tells where (AUTH-70)', async () => {
    const [home, away] = ['203.0.113.9', '203.0.113.10'];
    expect((await from(home, password)).status).toBe(200);
    app.clock.advance(90 * 24 * 60 * minute - 1);
    for (let place = 0; place < 20; place += 1) await failTimes(1, `198.51.100.${place + 1}`);
    const texts: string[] = [];
    for (const address of [home, away]) {
      const beganMs = performance.now();
      const refused = await from(address);
      expect(performance.now() - beganMs).toBeGreaterThanOrEqual(300);
      expect(refused.status).toBe(429);
      texts.push(refused.body.message);
    }
    expect(texts[0]).toBe(texts[1]);
    expect((await from(away, password)).status).toBe(429);
    expect((await from(home, password)).status).toBe(200);
    // That was a sign-in, too; the first one alone is too long ago by then.
    app.clock.advance(90 * 24 * 60 * minute);
    for (let place = 0; place < 20; place += 1) await failTimes(1, `198.51.100.${place + 1}`);
    expect((await from(home, password)).status).toBe(429);
  });

  it('200: an administrator can end the slow-down of an account (AUTH-70)', async () => {
    for (let place = 0; place < 21; place += 1) await from(`198.51.100.${place + 1}`);
    expect((await from('203.0.113.9', password)).status).toBe(429);
    const { db } = app.services;
    const { id: userId } = await db.read
      .selectFrom('users')
      .where('email', '=', email)
      .select('id')
      .executeTakeFirstOrThrow();
    await db.transaction((tx) => clearSlowDown(tx, app.services, { userId, email }));
    expect((await from('203.0.113.9', password)).status).toBe(200);
  });
});

describe('failed sign-ins through a proxy that is not trusted', () => {
  it('429: X-Forwarded-For changes nothing, and the log warns of it once (CONFIG-16)', async () => {
    const app = await TestApp.start({ RATE_LIMIT: 'on' });
    try {
      await app.setUp();
      const attempt = (given: string, last: number) =>
        attemptSignIn(app, { email, password: given, headers: { 'x-forwarded-for': `198.51.100.${last}` } });
      for (let done = 0; done < 5; done += 1) expect((await attempt('Wrong-Horse-7', done)).status).toBe(401);
      expect((await attempt(password, 99)).status).toBe(429);
      const warnings = app.logLines.filter((line) => line.includes('TRUST_PROXY')).map((line) => JSON.parse(line));
      expect(warnings).toMatchObject([{ level: 40, peer: '127.0.0.1', header: 'x-forwarded-for' }]);
    } finally {
      await app.close();
    }
  });

  it('401: without limits nothing is slowed down (CONFIG-14)', async () => {
    const app = await TestApp.start({ RATE_LIMIT: 'off' });
    try {
      await app.setUp();
      for (let done = 0; done < 8; done += 1) {
        expect((await attemptSignIn(app, { email, password: 'Wrong-Horse-7' })).status).toBe(401);
      }
      expect((await attemptSignIn(app, { email, password })).status).toBe(200);
    } finally {
      await app.close();
    }
  });
});
