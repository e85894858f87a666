import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { isKnownNetwork, pruneNetworks, rememberNetwork } from './public.ts';

const day = 86_400_000;

describe('networks that an account signed in from', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const rows = () => app.services.db.read.selectFrom('known_networks').orderBy('network').selectAll().execute();
  const remember = (userId: string, address: string) =>
    app.services.db.transaction((tx) => rememberNetwork(tx, app.services, { userId, address }));
  const isKnown = (email: string, address: string) => isKnownNetwork(app.services, email, address);

  it('are those of its sign-ins, by address or /64, for 90 days after the last one (AUTH-70)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    expect(await isKnown('grace@example.com', '127.0.0.1')).toBe(true);
    expect(await isKnown('grace@example.com', '::ffff:127.0.0.1')).toBe(true);
    expect(await isKnown('nobody@example.com', '127.0.0.1')).toBe(false);
    await remember(member.userId, '2001:db8:0:7::1');
    expect(await isKnown('grace@example.com', '2001:db8:0:7:ffff::2')).toBe(true);
    expect(await isKnown('grace@example.com', '2001:db8:0:8::1')).toBe(false);
    expect(await isKnown('ada@example.com', '2001:db8:0:7::1')).toBe(false);
    app.clock.advance(90 * day - 1);
    expect(await isKnown('grace@example.com', '127.0.0.1')).toBe(true);
    await remember(member.userId, '127.0.0.1');
    app.clock.advance(1);
    expect(await isKnown('grace@example.com', '2001:db8:0:7::1')).toBe(false);
    expect(await isKnown('grace@example.com', '127.0.0.1')).toBe(true);
  });

  it('are forgotten with the user, and once they count no longer; no address is none (AUTH-70)', async () => {
    admin = await app.signIn('ada@example.com');
    const member = await app.member(admin, 'leaver@example.com');
    await remember(member.userId, 'unknown');
    const networks = async () => (await rows()).filter(({ user_id }) => user_id === member.userId).length;
    expect(await networks()).toBe(1);
    await app.deleteUser(member.userId);
    expect(await networks()).toBe(0);
    app.clock.advance(91 * day);
    const count = (await rows()).length;
    expect(count).toBeGreaterThan(0);
    expect(await pruneNetworks(app.services)).toBe(count);
    expect(await rows()).toEqual([]);
  });
});
