import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secondConnection, storedRows } from '../../../test/support/second-connection.ts';
import { type Client, type Json, password, TestApp } from '../../../test/support/test-app.ts';
import { verifyAudit } from '../../audit-log/verify-audit.ts';
import { eraseUser, findErasable } from './public.ts';

const origin = { requestId: 'operator', network: 'local' };
const email = 'grace-4711@example.com';
/** All data about the user, anywhere. */
const said = ['grace-4711', 'Hopper4711', 'Rear4711', '+442079464711', 'Street4711', 'Scripts4711', 'Lost4711'];

describe('erasing the data of a person (AUDIT-14)', () => {
  let app: TestApp;
  let admin: Client;
  let grace: Client;
  let other: Client;
  let noted: Json;
  let eventsBefore: Json[];
  let rowsBefore: Json[];
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    other = await app.member(admin, 'other@example.com', 'Other Person');
    grace = await app.member(admin, email, 'Grace Hopper4711');
    const address = { addressLine1: 'Street4711', city: 'York' };
    const more = { designation: 'Rear4711', mobile: '+442079464711', address };
    const { status } = await grace.put(`/users/${grace.userId}`, { email, ...more });
    if (status !== 200) throw new Error(`not changed: ${status}`);
    // The response that is stored names her.
    const team = { name: 'Hers', members: [{ userId: grace.userId, role: 'READER' }] };
    const made = await admin.post('/teams', team, { headers: { 'idempotency-key': 'hers' } });
    if (made.status !== 201) throw new Error(`no team: ${made.status}`);
    const token = await grace.token({ name: 'Scripts4711' });
    const revoked = await admin.delete(`/personal-access-tokens/admin/${token.tokenId}`, { reason: 'Lost4711' });
    if (revoked.status !== 200) throw new Error(`not revoked: ${revoked.status}`);
    await grace.token({ name: 'Scripts4711 again' });
    await app.signInTokens(email, 'Wrong-Horse-1');
    await app.anonymous.post('/userAccount/password/forgot', { email });
    await app.services.afterResponse.close();
  });
  afterAll(() => app.close());
  const erase = (userId: string) => eraseUser(app.services, { userId, origin });
  const verdict = () => verifyAudit(app.services.db, { expected: noted });
  const stored = () => JSON.stringify(storedRows(app));

  it('is refused for anyone who is not deleted, or was never there', async () => {
    expect(await erase(grace.userId)).toBe('userNotDeleted');
    expect(await erase('0'.repeat(24))).toBe('noSuchUser');
    for (const text of said) expect(stored()).toContain(text);
  });

  it('takes all that is said of the person, and leaves the id (AUDIT-14, FIT-137)', async () => {
    const { head } = (await verdict()) as Json;
    noted = head;
    expect((await admin.delete(`/users/${grace.userId}`)).status).toBe(200);
    rowsBefore = await app.audit();
    eventsBefore = await app.events();
    expect(await findErasable(app.services.db.read, grace.userId)).toMatchObject({
      slug: expect.stringMatching(/^user-/),
    });
    const about = (row: Json) => [row.actor_user_id, row.subject_id, row.subject_owner_id].includes(grace.userId);
    expect(await erase(grace.userId)).toEqual({
      userId: grace.userId,
      records: rowsBefore.filter(about).length,
      events: 3,
    });
    for (const text of said) expect(stored(), text).not.toContain(text);
    const [user] = await app.services.db.read.selectFrom('users').where('id', '=', grace.userId).selectAll().execute();
    expect(user).toMatchObject({
      id: grace.userId,
      is_deleted: 1,
      full_name: 'Erased user',
      mobile: null,
      address: null,
    });
    expect(user?.email).toBe(`Erased-${grace.userId}@erased.invalid`);
    const tables = storedRows(app);
    const owned = [
      'one_time_links',
      'one_time_codes',
      'wrong_codes',
      'mailed_codes',
      'known_networks',
      'sign_in_progress',
      'sign_in_tickets',
      'sign_in_ends',
      'external_identities',
      'sessions',
    ];
    for (const table of owned) expect(tables[table]?.filter((row) => row.user_id === grace.userId)).toEqual([]);
  });

  it('leaves the audit log sound, up to the head that was noted before and on from there', async () => {
    expect(await verdict()).toMatchObject({ ok: true, records: (await app.audit()).length });
    const rows = await app.audit();
    expect(rows.slice(0, rowsBefore.length).map(({ hash }) => hash)).toEqual(rowsBefore.map(({ hash }) => hash));
    for (const [place, { salt, ...row }] of rowsBefore.entries()) {
      const about = [row.actor_user_id, row.subject_id, row.subject_owner_id].includes(grace.userId);
      const erased = { network: '', details: {}, changes: {}, salt: null };
      expect(rows[place]).toEqual(about ? { ...row, ...erased } : { ...row, salt });
    }
    expect(rows.at(-1)).toMatchObject({
      action: 'user.erased',
      subject_id: grace.userId,
      actor_user_id: null,
      network: 'local',
    });
    expect(rows.filter(({ action }) => action === 'token.revoked').at(-1)).toMatchObject({
      subject_owner_id: grace.userId,
    });
  });

  it('is told of by the records themselves: 200, with what is left (AUDIT-12)', async () => {
    const { records } = (await admin.get(`/audit?actor=${grace.userId}`)).body;
    expect(records.length).toBeGreaterThan(1);
    for (const record of records)
      expect(record).toMatchObject({ isErased: true, network: null, details: {}, changes: {} });
    expect((await admin.get('/audit?action=user.erased')).body.records).toMatchObject([{ isErased: false }]);
  });

  it('leaves events their places, types and ids', async () => {
    const events = await app.events();
    for (const [place, event] of eventsBefore.entries()) {
      const about = event.payload.userId === grace.userId;
      const payload = about ? { orgId: event.payload.orgId, userId: grace.userId } : event.payload;
      expect(events[place]).toEqual({ ...event, payload });
    }
  });

  it('leaves everyone else as they were', async () => {
    expect((await other.get(`/users/${other.userId}`)).body.email).toBe('other@example.com');
    expect((await app.signInTokens('other@example.com', password)).status).toBe(200);
  });

  it('404: who was erased cannot be restored; the address is free (USER-39)', async () => {
    const { status, body } = await admin.post(`/users/${grace.userId}/restore`);
    expect([status, body.error.code]).toEqual([404, 'NOT_FOUND']);
    expect(await erase(grace.userId)).toBe('userErased');
    expect((await admin.post('/users', { fullName: 'Grace again', email })).status).toBe(201);
  });

  it('a record that was erased too much, or that of the erasure taken away, is found', async () => {
    const store = secondConnection(app);
    const erased = "UPDATE audit_log SET network = '', details = '{}', changes = '{}', salt = NULL";
    const { sequence } = (await app.audit()).find(({ actor_user_id }) => actor_user_id === other.userId);
    store.prepare(`${erased} WHERE sequence = ?`).run(sequence);
    expect(await verdict()).toMatchObject({ ok: false, sequence, fault: 'erased' });
    store.prepare("DELETE FROM audit_log WHERE action = 'user.erased'").run();
    const first = rowsBefore.find(({ actor_user_id, subject_id }) =>
      [actor_user_id, subject_id].includes(grace.userId),
    );
    expect(await verdict()).toMatchObject({ ok: false, sequence: Math.min(sequence, first.sequence), fault: 'erased' });
    store.close();
  });
});
