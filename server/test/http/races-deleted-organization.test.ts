import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Gate, holdNext } from '../support/gates.ts';
import { storedRows } from '../support/second-connection.ts';
import { beginSignIn } from '../support/sign-in.ts';
import { type Client, password, TestApp } from '../support/test-app.ts';

const email = 'grace@example.com';

describe('N7: the organization is deleted while someone signs in', () => {
  let app: TestApp;
  let admin: Client;

  beforeEach(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    await app.member(admin, email);
  });
  afterEach(() => app.close());

  /** Holds a sign-in, acts meanwhile, and lets it go on; answers how it ended, and all rows before and after that. */
  async function around(hold: () => Gate, act: () => Promise<void>) {
    const headers = { 'x-session-token': await beginSignIn(app, email) };
    const gate = hold();
    const body = { method: 'password', credentials: { password }, email };
    const response = app.anonymous.post('/userAccount/authenticate', body, { headers });
    await gate.arrived;
    await act();
    const before = storedRows(app);
    gate.open();
    const { status, body: told } = await response;
    return { outcome: [status, told.error?.code], before, after: storedRows(app) };
  }

  const remove = async () => {
    expect((await admin.delete('/org')).status).toBe(200);
  };

  const gates: readonly (readonly [string, () => Gate])[] = [
    ['the check of the password', () => holdNext(app.services.passwords, 'matches')],
    ['signing', () => holdNext(app.services.keys, 'sign')],
    ['the transaction', () => holdNext(app.services.db, 'transaction')],
  ];

  it.each(gates)('401, and nothing is written: ahead of %s (AUTH-24, AUTH-27)', async (_, hold) => {
    const { outcome, before, after } = await around(hold, remove);
    expect(outcome).toEqual([401, 'UNAUTHORIZED']);
    expect(after).toEqual(before);
  });

  it.each(gates)('the gate itself changes nothing: ahead of %s', async (_, hold) => {
    const { outcome, before, after } = await around(hold, async () => {});
    expect(outcome).toEqual([200, undefined]);
    expect(after['sessions']).toHaveLength((before['sessions']?.length ?? 0) + 1);
    expect(after['session_tokens']).toHaveLength((before['session_tokens']?.length ?? 0) + 2);
  });
});
