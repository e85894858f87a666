import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ensureServerIsBuilt, withDirectory } from '../../server/test/support/server-process.ts';
import { password } from '../../server/test/support/test-app.ts';
import { latchkey, latchkeyJson } from './command-process.ts';
import { administrator, done, member, query, serverOn, signIn, statusOf, tablesAt, tokenOf } from './restored.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 120_000 });

const newPassword = 'Brand-New-Horse-8';

describe('latchkey restore over a store that goes on from the back-up', () => {
  it('0: what ended since stays so, what goes on goes on, both logs go on, and it can be undone (CLI-27, CLI-28, CLI-26)', () =>
    withDirectory(async (directory) => {
      const [dataDir, file] = [join(directory, 'data'), join(directory, 'one.lkb')];
      const at = ['--data-dir', dataDir];
      let server = await serverOn(dataDir);
      const admin = await server.setUp();
      const grace = await member(server, admin, 'grace');
      const hedy = await member(server, admin, 'hedy');
      const elsewhere = (await signIn(server, hedy.email)).body.accessToken;
      const katherine = await member(server, admin, 'katherine');
      const gone = await member(server, admin, 'gone');
      const kept = await tokenOf(server, grace.session, 'kept');
      const revoked = await tokenOf(server, grace.session, 'revoked');
      const ofGone = await tokenOf(server, gone.session, 'of somebody who goes');
      const groups = (await done(server, 'GET /userGroups', { token: admin })).groups;
      const adminGroup = groups.find(({ type }: { type: string }) => type === 'admin')._id;
      await done(server, 'POST /userGroups/add-users', {
        token: admin,
        body: { userIds: [hedy.id], groupIds: [adminGroup] },
      });
      const input = { name: 'connector', scopes: ['EVENTS_READ'] };
      const service = await done(server, 'POST /service-clients', { token: admin, body: input });
      const alive = await done(server, 'POST /service-clients', { token: admin, body: input });
      const hook = await done(server, 'POST /webhooks', { token: admin, body: { url: 'https://example.com/one' } });
      await latchkeyJson('backup', '--to', file, ...at);
      const noted = (await latchkeyJson('audit', 'verify', ...at)).head;

      // Since then …
      await done(server, `DELETE /personal-access-tokens/${revoked.id}`, { token: grace.session });
      await done(server, `DELETE /users/${gone.id}`, { token: admin });
      await done(server, 'POST /userGroups/remove-users', {
        token: admin,
        body: { userIds: [hedy.id], groupIds: [adminGroup] },
      });
      await done(server, `DELETE /service-clients/${service.clientId}`, { token: admin });
      await done(server, `DELETE /webhooks/${hook.id}`, { token: admin });
      const changed = await done(server, 'POST /userAccount/password/reset', {
        token: hedy.session,
        body: {
          currentPassword: password,
          newPassword,
        },
      });
      await done(server, 'POST /userAccount/logout/manual', { token: katherine.session, body: {} });
      const rotated = await done(server, 'POST /userAccount/refresh/token', { token: grace.refresh });
      await done(server, `PATCH /users/${grace.id}/email`, {
        token: admin,
        body: { email: 'grace.hopper@example.com' },
      });
      await done(server, `PATCH /users/${grace.id}/designation`, { token: admin, body: { designation: 'Admiral' } });
      const later = await member(server, admin, 'later');
      const ofLater = await tokenOf(server, later.session, 'since');
      const since = await tokenOf(server, grace.session, 'since');
      const { events: toldBefore } = await done(server, 'GET /events', { token: admin });
      const lastTold = toldBefore.at(-1).sequence;
      expect((await server.end('SIGTERM')).code).toBe(0);
      const before = tablesAt(dataDir);

      const { restored } = await latchkeyJson('restore', '--from', file, ...at);
      expect(restored.carried).toEqual({
        ended: {
          tokensRevoked: 1,
          sessionsEnded: expect.any(Number),
          linksEnded: expect.any(Number),
          passwordsChanged: 2,
          addressesChanged: 1,
          identitiesRemoved: 0,
          usersDeleted: 1,
          usersErased: 0,
          administratorsRemoved: 1,
          servicesEnded: 1,
          webhooksRemoved: 1,
        },
        // Of users created later, and of the user who changed the password.
        leftBehind: { users: 1, tokens: 2, sessions: 2, services: 0, webhooks: 0 },
        events: 2,
      });
      const records = query(dataDir, "SELECT * FROM audit_log WHERE action = 'store.restored'");
      expect(records).toHaveLength(1);
      expect(JSON.parse(records[0].details)).toMatchObject({ carried: restored.carried.ended, events: 2 });
      await latchkeyJson('audit', 'verify', ...at, '--expect', `${noted.sequence}:${noted.hash}`);
      expect(query(dataDir, 'SELECT * FROM audit_log ORDER BY sequence').slice(0, -1)).toEqual(before['audit_log']);

      server = await serverOn(dataDir);
      expect(await statusOf(server, kept.raw)).toBe(200);
      expect(await statusOf(server, grace.session)).toBe(200);
      expect(await statusOf(server, rotated.accessToken)).toBe(200);
      for (const [what, dead] of Object.entries({
        revoked: revoked.raw,
        ofGone: ofGone.raw,
        gone: gone.session,
        katherine: katherine.session,
        hedy: hedy.session,
        elsewhere,
        changed: changed.accessToken,
        later: later.session,
        ofLater: ofLater.raw,
        since: since.raw,
      })) {
        expect([what, await statusOf(server, dead)]).toEqual([what, 401]);
      }
      // The earlier refresh token was exchanged, and its successor stays valid.
      expect((await signIn(server, hedy.email)).status).toBe(401);
      const hedyNow = await signIn(server, hedy.email, newPassword);
      expect(hedyNow.status).toBe(200);
      expect(await statusOf(server, hedyNow.body.accessToken, '/audit')).toBe(403);
      expect((await signIn(server, 'grace@example.com')).status).toBe(401);
      expect((await signIn(server, 'grace.hopper@example.com')).status).toBe(200);
      expect((await signIn(server, gone.email)).status).toBe(401);
      const asToken = (client: { clientId: string; clientSecret: string }) =>
        server.call('POST', '/oauth2/token', {
          body: { grant_type: 'client_credentials', client_id: client.clientId, client_secret: client.clientSecret },
        });
      expect([(await asToken(service)).status, (await asToken(alive)).status]).toEqual([401, 200]);
      const adminNow = (await signIn(server, administrator)).body.accessToken;
      expect((await done(server, 'GET /webhooks', { token: adminNow })).webhooks).toEqual([]);

      const { events } = await done(server, `GET /events?after=${lastTold}`, { token: adminNow });
      expect(events).toMatchObject([
        { eventType: 'userDeleted', sequence: lastTold + 1, payload: { userId: later.id } },
        { eventType: 'userUpdated', sequence: lastTold + 2, payload: { userId: grace.id } },
      ]);
      expect(events[1].payload).not.toHaveProperty('designation');
      const all = (await done(server, 'GET /events?limit=1000', { token: adminNow })).events;
      expect(all.slice(0, toldBefore.length)).toEqual(toldBefore);
      const newUser = await done(server, 'POST /users', {
        token: adminNow,
        body: { fullName: 'New', email: 'new@example.com' },
      });
      expect(newUser.slug).toBe('user-1007');
      expect((await server.call('POST', '/userAccount/refresh/token', { token: rotated.refreshToken })).status).toBe(
        200,
      );
      expect((await server.end('SIGTERM')).code).toBe(0);

      expect(readdirSync(dataDir).filter((name) => name.startsWith('restoring'))).toEqual([]);
      const aside = join(restored.keptAside, 'latchkey.db');
      expect([statSync(aside).mode & 0o777, tablesAt(restored.keptAside)]).toEqual([0o600, before]);
      expect(existsSync(`${aside}-wal`)).toBe(false);
    }));

  it('0: who was erased since is so again, and no one finds anything of them (CLI-27, AUDIT-14)', () =>
    withDirectory(async (directory) => {
      const [dataDir, file] = [join(directory, 'data'), join(directory, 'one.lkb')];
      const server = await serverOn(dataDir);
      const admin = await server.setUp();
      const body = { fullName: 'Grace Hopper4711', email: 'grace@example.com' };
      const { _id: id } = await done(server, 'POST /users', { token: admin, body: body });
      await latchkeyJson('backup', '--to', file, '--data-dir', dataDir);
      await done(server, `DELETE /users/${id}`, { token: admin });
      await latchkeyJson('user', 'erase', '--user', id, '--yes', '--data-dir', dataDir);
      expect((await server.end('SIGTERM')).code).toBe(0);
      const { restored } = await latchkeyJson('restore', '--from', file, '--data-dir', dataDir);
      expect(restored.carried.ended).toMatchObject({ usersErased: 1, usersDeleted: 1 });
      expect(restored.audit.ok).toBe(true);
      expect(JSON.stringify(tablesAt(dataDir))).not.toMatch(/Hopper4711|grace@example.com/);
      expect(query(dataDir, `SELECT full_name FROM users WHERE id = '${id}'`)).toEqual([{ full_name: 'Erased user' }]);
    }));

  it('0: an earlier back-up and then a later one, both over the same line (CLI-27, CLI-28)', () =>
    withDirectory(async (directory) => {
      const [dataDir, one, two] = [join(directory, 'data'), join(directory, 'one.lkb'), join(directory, 'two.lkb')];
      const at = ['--data-dir', dataDir];
      await latchkeyJson('seed', '--users', '20', '--tokens', '10', ...at);
      await latchkeyJson('backup', '--to', one, ...at);
      await latchkeyJson('seed', '--users', '10', '--seed', '2', ...at);
      await latchkeyJson('backup', '--to', two, ...at);
      expect((await latchkeyJson('restore', '--from', one, ...at)).restored.carried.leftBehind.users).toBe(10);
      const { restored } = await latchkeyJson('restore', '--from', two, ...at, '--revoke', 'tokens');
      expect(restored).toMatchObject({ facts: { users: 31 }, revoked: { tokens: 10 }, audit: { ok: true } });
      expect(restored.carried.events).toBe(10);
      const numbers = query(dataDir, 'SELECT sequence FROM outbox ORDER BY sequence').map(({ sequence }) => sequence);
      expect(numbers).toEqual(numbers.map((_, place) => place + 1));
      expect((await latchkey(['audit', 'verify', ...at])).code).toBe(0);
    }));
});
