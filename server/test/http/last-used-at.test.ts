import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hour, minute, toTimestamp } from '../../src/base/clock.ts';
import { secondConnection } from '../support/second-connection.ts';
import { introspect, registerService } from '../support/service-clients.ts';
import type { StoreConnection } from '../support/store-connection.ts';
import { addTrigger } from '../support/store-trigger.ts';
import { type Client, TestApp, type TokenClient } from '../support/test-app.ts';

describe('lastUsedAt', () => {
  let app: TestApp;
  let admin: Client;
  let token: TokenClient;
  /** Another process, which sees every write to `last_used_at` by way of a trigger. */
  let observer: StoreConnection;

  beforeEach(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    token = await admin.token();
    observer = secondConnection(app);
    observer.exec('CREATE TABLE uses (number INTEGER, used_at BIGINT)');
    addTrigger(observer, {
      name: 'seen',
      on: 'AFTER UPDATE OF last_used_at ON personal_access_tokens',
      does: 'INSERT INTO uses SELECT count(*), new.last_used_at FROM uses',
    });
  });
  afterEach(async () => {
    observer.close();
    await app.close();
  });

  const shown = async (): Promise<string | null> =>
    (await admin.get('/personal-access-tokens')).body.tokens[0].lastUsedAt;
  const writes = () => observer.prepare('SELECT used_at FROM uses ORDER BY number').pluck().all();
  const stored = () =>
    observer.prepare('SELECT last_used_at FROM personal_access_tokens WHERE id = ?').pluck().get(token.tokenId);
  const written = (count: number) => expect.poll(writes, { timeout: 15_000, interval: 10 }).toHaveLength(count);

  it('is set where a service asks about the token, and it is active; not where it is not (CRED-9)', async () => {
    const service = await registerService(admin);
    const revoked = await admin.token();
    await admin.delete(`/personal-access-tokens/${revoked.tokenId}`);
    expect((await introspect(app, service, revoked.credential ?? '')).body).toEqual({ active: false });
    expect((await introspect(app, service, token.credential ?? '')).body.active).toBe(true);
    await written(1);
    expect(await shown()).toBe(toTimestamp(app.clock.now()));
    expect((await introspect(app, service, token.credential ?? '')).body.active).toBe(true);
    app.clock.advance(minute);
    expect((await introspect(app, service, token.credential ?? '')).body.active).toBe(true);
    await written(2);
  });

  it('is null until the first use, then soon the moment of it (PAT-30, PAT-31)', async () => {
    expect(await shown()).toBeNull();
    app.clock.advance(7_000);
    const usedAt = app.clock.now();
    expect((await token.get('/org')).status).toBe(200);
    app.clock.advance(500);
    await expect.poll(shown, { timeout: 15_000, interval: 10 }).toBe(toTimestamp(usedAt));
    const { body } = await admin.get('/personal-access-tokens/admin');
    expect(body.data[0].lastUsedAt).toBe(toTimestamp(usedAt));
  });

  it('is written at most once a minute, however many calls there are (PAT-31)', async () => {
    await token.get('/org');
    await written(1);
    app.clock.advance(1_000);
    // The write of another token shows that there was an occasion, and that this one was held back.
    const other = await admin.token();
    const callers = [other, ...Array.from({ length: 50 }, () => token)];
    await Promise.all(callers.map((caller) => caller.get('/org')));
    await written(2);
    expect(stored()).toBe(app.clock.now() - 1_000);
    for (let round = 0; round < 5; round += 1) {
      app.clock.advance(100);
      await Promise.all(Array.from({ length: 40 }, () => token.get('/org')));
    }
    app.clock.advance(minute);
    const lastMs = app.clock.now();
    await token.get('/org');
    await app.stop();
    expect(writes()).toHaveLength(3);
    expect(stored()).toBe(lastMs);
  });

  it('never goes backwards when the clock does (PAT-31)', async () => {
    const usedAt = app.clock.now();
    await token.get('/org');
    await written(1);
    app.clock.advance(-hour);
    await token.get('/org');
    await app.stop();
    expect(writes()).toEqual([usedAt]);
    expect(stored()).toBe(usedAt);
  });

  it('is written when the service stops, also what the minute held back (PAT-31, RUN-7)', async () => {
    await token.get('/org');
    await written(1);
    app.clock.advance(5_000);
    await token.get('/org');
    const other = await admin.token();
    await other.get('/org');
    await app.stop();
    expect(stored()).toBe(app.clock.now());
    expect(writes()).toHaveLength(3);
  });

  it('counts what was let in, not what was refused as a credential; sessions have none (PAT-30)', async () => {
    const revoked = await admin.token();
    await admin.delete(`/personal-access-tokens/${revoked.tokenId}`);
    await revoked.get('/org');
    await app.with(`${token.credential}x`).get('/org');
    await admin.get('/org');
    await app.stop();
    expect(writes()).toEqual([]);
  });
});
