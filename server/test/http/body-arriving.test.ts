import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Principal } from '../../src/access/principal.ts';
import type { Reader } from '../../src/db/database.ts';
import { callTool, codeOf } from '../support/agents.ts';
import { MailServer } from '../support/mail-server.ts';
import { OidcServer } from '../support/oidc-server.ts';
import { RawConnection } from '../support/raw-http.ts';
import { nextTurn, storedRows } from '../support/second-connection.ts';
import { type Client, TestApp } from '../support/test-app.ts';
import { newPassword } from '../support/valid-requests.ts';
import { sentBy, type WritingCall, writingCalls, writingOtherwise } from '../support/writing-calls.ts';

const callerEmail = 'grace@example.com';

describe('what changes between admission and the end of a body (AUTH-27, STORE-7)', () => {
  let mails: MailServer;
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;
  /** An administrator who need not stay one. */
  let caller: Client;
  let calls: readonly WritingCall[];
  /** Number of running credential checks. */
  let asked = 0;

  function counted<T>(response: Promise<T>): Promise<T> {
    asked += 1;
    return response.finally(() => {
      asked -= 1;
    });
  }

  beforeAll(async () => {
    provider = await OidcServer.start();
  });
  afterAll(() => provider.stop());

  beforeEach(async () => {
    mails = await MailServer.start();
    app = await TestApp.start({ SMTP_URL: mails.url, OUTBOUND_NETWORKS: '127.0.0.1' });
    const { db } = app.services;
    const { refreshVersion: freshen, first } = db;
    db.refreshVersion = () => {
      const fresh = freshen();
      return fresh && counted(fresh);
    };
    db.first = (query, given) => counted(first(query, given));
    admin = await app.setUp();
    caller = await app.member(admin, callerEmail);
    await app.promote(caller.userId);
    calls = await writingCalls({ app, admin, caller, callerEmail, issuer: provider.issuer });
  });
  afterEach(async () => {
    await app.close();
    await mails.stop();
  });

  /** Sends all but the end of a call; the answer comes when `finish` is called. */
  async function begin(client: Client, call: WritingCall) {
    const { type, bytes } = sentBy(call);
    const lines = [
      `${call.endpoint.method} /api/v1${call.path} HTTP/1.1`,
      'host: x',
      `authorization: Bearer ${client.credential}`,
      `content-type: ${type}`,
      `content-length: ${bytes.length}`,
    ];
    const arrived = once(app.app.server, 'request');
    const connection = new RawConnection(app).send(`${lines.join('\r\n')}\r\n\r\n`).send(bytes.subarray(0, -1));
    await arrived;
    return {
      finish: async () => {
        connection.send(bytes.subarray(-1));
        const { answers: responses } = await connection.until((seen) => seen.answers.length > 0);
        connection.destroy();
        return `${responses[0]?.status} ${responses[0]?.body?.error?.code ?? 'done'}`;
      },
    };
  }

  /** Waits until nothing is asked of the store any more: then all that have begun are let in, and wait for their ends. */
  async function admitted(): Promise<void> {
    await nextTurn();
    await vi.waitUntil(() => asked === 0, { interval: 1 });
  }

  /** Begins the calls, lets something happen, and ends them one after another. */
  async function around(client: Client, some: readonly WritingCall[], act: () => Promise<unknown>) {
    const begun: Awaited<ReturnType<typeof begin>>[] = [];
    for (const call of some) begun.push(await begin(client, call));
    await admitted();
    await act();
    const before = storedRows(app);
    const outcomes: string[] = [];
    for (const [place, { finish }] of begun.entries()) outcomes.push(`${some[place]?.route}: ${await finish()}`);
    const after = storedRows(app);
    const changed = Object.keys(before).filter((name) => JSON.stringify(after[name]) !== JSON.stringify(before[name]));
    return { outcomes, changed };
  }

  const deleteCaller = async () => {
    await app.demote(caller.userId);
    await app.deleteUser(caller.userId);
  };
  const signInAgain = async (email: string) => {
    const { body } = await app.signInTokens(email, newPassword);
    caller = app.with(body.accessToken);
  };
  const all = (outcome: string) => ({ outcomes: calls.map(({ route }) => `${route}: ${outcome}`), changed: [] });
  /** By a token, what takes a session only is refused before its body is waited for. */
  const allByToken = (outcome: string) => ({
    outcomes: calls.map(
      ({ endpoint, route }) => `${route}: ${'sessionOnly' in endpoint.policy ? '403 FORBIDDEN' : outcome}`,
    ),
    changed: [],
  });
  /** What the policy of a call answers to a user who is no administrator. */
  function errorOf({ endpoint: { policy }, who }: WritingCall): string {
    if (who === 'adminOrSelf') return '403 FORBIDDEN';
    return 'adminFirst' in policy ? '400 ADMIN_REQUIRED' : '403 ADMIN_REQUIRED';
  }
  const needsAdmin = ({ who }: WritingCall) => who === 'admin' || who === 'adminOrSelf';

  it('every route by which a user writes asks for the user again, but the one that ends only the own session (AUTH-18)', () => {
    expect(writingOtherwise.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /userAccount/logout/manual',
    ]);
    expect(calls.length).toBeGreaterThan(50);
  });

  it('nothing: the gate itself refuses no one, and what is asked for is done', async () => {
    for (const call of calls) {
      const { outcomes } = await around(caller, [call], async () => {});
      expect(outcomes).toEqual([expect.stringMatching(/: 20[01] done$/)]);
      // It ends every session, the caller's own included (SESSION-1).
      if (call.route.endsWith('/password/reset')) await signInAgain(callerEmail);
    }
  });

  it('401: the organization is deleted (ORG-26)', async () => {
    expect(await around(caller, calls, () => app.deleteOrganization())).toEqual(all('401 TOKEN_INVALID'));
    const events = await app.events();
    expect(events.at(-1).event_type).toBe('orgDeleted');
  });

  it('401: the caller is deleted, by session and by token (AUTH-24)', async () => {
    const token = await caller.token();
    expect(await around(caller, calls, deleteCaller)).toEqual(all('401 TOKEN_INVALID'));
    await app.services.db.transaction((tx) =>
      tx.updateTable('users').set({ is_deleted: 0 }).where('id', '=', caller.userId).execute(),
    );
    await app.promote(caller.userId);
    expect(await around(token, calls, deleteCaller)).toEqual(allByToken('401 TOKEN_INVALID'));
  });

  it('401: the session is logged out (AUTH-18)', async () => {
    const logOut = () => caller.post('/userAccount/logout/manual');
    expect(await around(caller, calls, logOut)).toEqual(all('401 SESSION_EXPIRED'));
  });

  it('401: the token is revoked (PAT-16)', async () => {
    const token = await caller.token();
    const revoke = () => admin.delete(`/personal-access-tokens/admin/${token.tokenId}`);
    expect(await around(token, calls, revoke)).toEqual(allByToken('401 TOKEN_REVOKED'));
  });

  it('401: the token reaches its time (AUTH-22)', async () => {
    const token = await caller.token({ expiryDays: 30 });
    const wait = async () => app.clock.advance(31 * 86_400_000);
    expect(await around(token, calls, wait)).toEqual(allByToken('401 TOKEN_EXPIRED'));
  });

  it('403: the caller is demoted; what all may do of their own goes on (AUTH-29, AUTH-30, ERR-13)', async () => {
    const needing = calls.filter(needsAdmin);
    const others = calls.filter((call) => !needsAdmin(call));
    const refused = await around(caller, needing, () => app.demote(caller.userId));
    expect(refused).toEqual({ outcomes: needing.map((call) => `${call.route}: ${errorOf(call)}`), changed: [] });
    await app.promote(caller.userId);
    const done = await around(caller, others, () => app.demote(caller.userId));
    expect(done.outcomes).toEqual(others.map(() => expect.stringMatching(/: 20[01] done$/)));
  });

  it('403: the caller of a tool is demoted between its admission and its transaction (MCP-9)', async () => {
    const { db } = app.services;
    const { transaction } = db;
    const needing = calls.filter((call) => call.endpoint.tool && needsAdmin(call));
    const token = await caller.token();
    const others = () => ({ ...storedRows(app), group_members: null });
    for (const { endpoint, params, body, route } of needing) {
      const before = others();
      db.transaction = async (work) => {
        db.transaction = transaction;
        await app.demote(caller.userId);
        return transaction(work);
      };
      const result = await callTool(token, endpoint.tool?.name ?? '', { ...params, ...body });
      expect([route, codeOf(result)]).toEqual([
        route,
        endpoint.policy.who === 'adminOrSelf' ? 'FORBIDDEN' : 'ADMIN_REQUIRED',
      ]);
      await app.promote(caller.userId);
      expect(others()).toEqual(before);
    }
  });

  it('without the second look all of that would be done: a broken mutant is caught', async () => {
    Object.assign(app.services, { reauthorize: async (_: Reader, user: Principal) => user });
    // They need the organization's own record, and find out without the second look that it is gone; what a new password
    // ends has ended.
    const needing = ['POST /users/bulk/invite', 'POST /users/:id/resend-invite', 'POST /userAccount/password/reset'];
    needing.push('DELETE /userAccount/sessions/:id', 'POST /users/bulk/invite/upload');
    const others = calls.filter(({ route }) => !needing.includes(route));
    const rest = calls.filter(({ route }) => needing.includes(route));
    const done = { statuses: new Set(['20']), isChanged: true };
    const tried = async (some: readonly WritingCall[], act: () => Promise<unknown>) => {
      const { outcomes, changed } = await around(caller, some, act);
      return {
        statuses: new Set(outcomes.map((outcome) => outcome.split(': ')[1]?.slice(0, 2))),
        isChanged: changed.length > 0,
      };
    };
    expect(await tried(rest, () => caller.post('/userAccount/logout/manual'))).toEqual(done);
    await signInAgain(callerEmail);
    expect(await tried(others, () => app.deleteOrganization())).toEqual(done);
  });
});
