import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const path = '/settings/smtp';
const input = { host: 'mail.example.com', from: 'Example <hello@example.com>' };
const removed = { message: 'Mail settings removed successfully' };

describe('DELETE /settings/smtp', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const rows = () => app.services.db.read.selectFrom('settings').select('name').execute();

  it('200: forgets what is stored, at once, and records it; 404: the second time (AUDIT-4, MAIL-1, MAIL-9)', async () => {
    await admin.put(path, input);
    expect((await admin.post('/users/bulk/invite', { emails: [] })).body.error.code).toBe('VALIDATION_ERROR');
    const { status, body } = await admin.delete(path);
    expect([status, body]).toEqual([200, removed]);
    expect(await rows()).toEqual([]);
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'settings.mail-removed',
      actor_user_id: admin.userId,
      subject_id: null,
      details: {},
    });
    const records = (await app.audit()).length;
    expect((await admin.get(path)).body).toMatchObject({ configured: false, note: null });
    expect((await admin.post('/users/bulk/invite', { emails: [] })).body.message).toContain('SMTP_URL');
    const again = await admin.delete(path);
    expect([again.status, again.body.error.code]).toEqual([404, 'NOT_FOUND']);
    expect((await app.audit()).length).toBe(records);
  });

  it('404: when another process has just removed it (MAIL-9)', async () => {
    await admin.put(path, input);
    const store = secondConnection(app);
    store.prepare('DELETE FROM settings').run();
    store.close();
    expect((await admin.delete(path)).status).toBe(404);
  });

  it('200: once of many at once', async () => {
    await admin.put(path, input);
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => admin.delete(path)))).map(
      ({ status }) => status,
    );
    expect(statuses.toSorted((one, other) => one - other)).toEqual([200, ...Array.from({ length: 7 }, () => 404)]);
  });

  it('200: with the configuration, which stays (CONFIG-23)', async () => {
    const other = await TestApp.start({ SMTP_URL: 'smtp://mail.example.com' });
    const its = await other.setUp();
    expect((await its.delete(path)).status).toBe(404);
    await its.put(path, input);
    expect((await its.delete(path)).body).toEqual(removed);
    expect((await its.get(path)).body).toMatchObject({ configured: true, source: 'configuration', note: null });
    await other.close();
  });

  it('403: for members and for tokens without org:admin; 401: for no one; nothing changes (AUDIT-4)', async () => {
    await admin.put(path, input);
    const member = await app.member(admin, 'grace@example.com');
    const narrow = await admin.token({ scopes: ['org:write', 'user:delete'] });
    const callers = [member, await member.token(), narrow, app.anonymous, app.service(['FETCH_CONFIG'])];
    const statuses: number[] = [];
    for (const caller of callers) statuses.push((await caller.delete(path)).status);
    expect(statuses).toEqual([403, 403, 403, 401, 401]);
    expect(await rows()).toEqual([{ name: 'smtp' }]);
    expect((await (await admin.token({ scopes: ['org:admin'] })).delete(path)).status).toBe(200);
  });
});
