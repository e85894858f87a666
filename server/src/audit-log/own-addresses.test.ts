import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../test/support/test-app.ts';
import { up } from '../db/schema/migrations/0011-verified-addresses.ts';
import { selectOwnAddresses } from './own-addresses.ts';

describe('a store of an earlier release (ADDRESS-12)', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const own = async () => (await selectOwnAddresses(app.services.db.read)).map(({ email }) => email);
  /** Restores the state that a change in a session left in earlier releases. */
  const forgetEarlier = ({ userId }: Client) =>
    app.services.db.transaction((tx) =>
      tx.updateTable('users').set({ recovery_email: null }).where('id', '=', userId).execute(),
    );

  it('lists the addresses that users set themselves, until one is confirmed or changed', async () => {
    const [one, two, three, moved] = [
      await app.member(admin, 'one@example.com'),
      await app.member(admin, 'two@example.com'),
      await app.member(admin, 'three@example.com'),
      await app.member(admin, 'moved@example.com'),
    ];
    for (const member of [one, two, three]) {
      await member.patch(`/users/${member.userId}/email`, { email: `own-${member.userId}@example.com` });
      await member.patch(`/users/${member.userId}/designation`, { designation: 'X' });
    }
    await admin.patch(`/users/${moved.userId}/email`, { email: 'given@example.com' });
    expect(await own()).toEqual([]);
    for (const member of [one, two, three]) await forgetEarlier(member);
    expect(await own()).toEqual([one, two, three].map(({ userId }) => `own-${userId}@example.com`));
    await admin.post('/userAccount/email/confirm', { userId: one.userId });
    await admin.put(`/users/${two.userId}`, { email: 'set@example.com' });
    expect(await own()).toEqual([`own-${three.userId}@example.com`]);
    await app.deleteUser(three.userId);
    expect(await own()).toEqual([]);
  });

  it('keeps every address, verified since the first proof, or else since the account is there', async () => {
    const [invited, linked, plain, pending] = [
      await app.member(admin, 'invited@example.com'),
      await app.member(admin, 'linked@example.com'),
      await app.member(admin, 'plain@example.com'),
      await app.member(admin, 'pending@example.com'),
    ];
    const { orgId } = (await admin.get(`/users/${plain.userId}`)).body;
    await pending.patch(`/users/${pending.userId}/email`, { email: 'claimed@example.com' });
    const link = (delivery: 'sent' | 'shown', endedAt: number, userId: string) => ({
      id: `l-${endedAt}`,
      org_id: orgId,
      user_id: userId,
      purpose: 'invitation' as const,
      is_returning: 0 as const,
      delivery,
      created_at: 1,
      ended_at: endedAt,
      end_reason: 'used' as const,
      is_current: 0 as const,
    });
    const dates = await app.services.db.transaction(async (tx) => {
      await tx
        .insertInto('one_time_links')
        .values([link('sent', 70, invited.userId), link('sent', 60, invited.userId), link('shown', 50, plain.userId)])
        .execute();
      const identity = { issuer: 'i', subject: 's', user_id: linked.userId, created_at: 80 };
      await tx.insertInto('external_identities').values(identity).execute();
      await sql`alter table users drop column email_verified_at`.execute(tx);
      await sql`alter table one_time_links drop column needs_password`.execute(tx);
      await up(tx);
      return tx.selectFrom('users').select(['id', 'created_at as createdAt', 'email_verified_at as at']).execute();
    });
    const at = ({ userId }: Client) => dates.find(({ id }) => id === userId)?.at;
    expect([at(invited), at(linked)]).toEqual([60, 80]);
    const others = dates.filter(({ id }) => id !== invited.userId && id !== linked.userId);
    expect(others.map((one) => one.at)).toEqual(others.map(({ createdAt }) => createdAt));
    const seen = async ({ userId }: Client) => (await admin.get(`/users/${userId}`)).body;
    expect(await seen(plain)).toMatchObject({ emailVerifiedAt: expect.any(String) });
    expect(await seen(pending)).toMatchObject({ email: 'claimed@example.com', emailVerifiedAt: null });
  });
});
