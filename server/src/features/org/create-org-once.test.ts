import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tablesOf } from '../../../test/support/statement-watch.ts';
import { organization, TestApp } from '../../../test/support/test-app.ts';

/** Counts password hashes and holds each back until `together` of them have been asked for. */
function gateHashing(app: TestApp, together: number): { asked: number } {
  const { passwords } = app.services;
  const hash = passwords.hash.bind(passwords);
  const counted = { asked: 0 };
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  passwords.hash = async (password) => {
    counted.asked += 1;
    if (counted.asked >= together) open();
    await opened;
    return hash(password);
  };
  return counted;
}

describe('POST /org, more than once', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await TestApp.start();
  });
  afterEach(() => app.close());

  it('200 and 49 times 409: of 50 that have all seen that there is none, one creates it (ORG-12, STORE-5)', async () => {
    const parallel = 50;
    const hashing = gateHashing(app, parallel);
    const bodies = Array.from({ length: parallel }, (_, place) => ({
      ...organization,
      contactEmail: `ada${place}@example.com`,
    }));
    const responses = await Promise.all(bodies.map((body) => app.anonymous.post('/org', body)));
    expect(hashing.asked).toBe(parallel);
    const [winner, ...others] = responses.filter(({ status }) => status === 200);
    expect(others).toEqual([]);
    const refused = responses.filter(({ status }) => status === 409);
    expect(refused).toHaveLength(parallel - 1);
    for (const { body } of refused) expect(body.error.code).toBe('CONFLICT');

    const { contactEmail } = winner?.body ?? {};
    const tables = tablesOf(app);
    const counts = Object.fromEntries(Object.entries(tables).map(([table, rows]) => [table, rows.length]));
    expect(counts).toMatchObject({
      organizations: 1,
      users: 1,
      user_groups: 3,
      group_members: 2,
      password_credentials: 1,
    });
    expect(counts).toMatchObject({ auth_configs: 1, outbox: 2, audit_log: 1 });
    expect(tables['counters']).toEqual(
      expect.arrayContaining([
        { name: 'org', value: 1001 },
        { name: 'user', value: 1001 },
        { name: 'usergroup', value: 1003 },
        { name: 'event', value: 2 },
        { name: 'audit', value: 1 },
      ]),
    );
    expect((await app.signInTokens(contactEmail)).status).toBe(200);
  });

  it('409: a second organization is refused before its body is looked at (ORG-13)', async () => {
    await app.setUp();
    const attempts = [
      { body: organization },
      { body: {} },
      {},
      { raw: '{"accountType":', headers: { 'content-type': 'application/json' } },
      { raw: 'accountType=business', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      { raw: new Uint8Array([0xff, 0xfe]), headers: { 'content-type': 'application/json' } },
    ];
    for (const attempt of attempts) {
      const response = await app.anonymous.call('POST', '/org', attempt);
      expect(response).toMatchObject({ status: 409, body: { error: { code: 'CONFLICT' } } });
      expect(response.body.error).not.toHaveProperty('details');
    }
  });

  it('409: later ones are cheap, no password is hashed for them (ORG-13)', async () => {
    await app.setUp();
    const hashing = gateHashing(app, 0);
    const responses = await Promise.all(Array.from({ length: 200 }, () => app.anonymous.post('/org', organization)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([409]));
    expect(hashing.asked).toBe(0);
    expect(await app.events()).toHaveLength(2);
  });

  it('413: a body over the limit, organization or not (HTTP-11)', async () => {
    const raw = JSON.stringify({ ...organization, shortName: 'x'.repeat(1_048_576) });
    const headers = { 'content-type': 'application/json' };
    expect((await app.anonymous.call('POST', '/org', { raw, headers })).status).toBe(413);
    await app.setUp();
    expect((await app.anonymous.call('POST', '/org', { raw, headers })).status).toBe(413);
  });
});
