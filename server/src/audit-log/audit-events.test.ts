import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../test/support/test-app.ts';
import { readAuditEvents, selectAuditEnd } from './audit-events.ts';

describe('the stream audit-events (AUDIT-1)', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    await admin.post('/userGroups', { name: 'Research', type: 'custom' });
    await app.service(['FETCH_CONFIG']).post('/users/updateAppConfig');
  });
  afterAll(() => app.close());
  const read = (after: number, limit = 100) => readAuditEvents(app.services.db.read, after, limit);

  it('has each record, in order, as GET /audit answers it, by organization', async () => {
    const { records } = (await admin.get('/audit')).body;
    const events = await read(0);
    const expected = [...records].reverse().map((record: Json) => ({
      key: record.orgId ?? '',
      envelope: {
        eventType: record.action,
        timestamp: Date.parse(record.timestamp),
        payload: record,
        id: record.id,
        sequence: record.sequence,
      },
    }));
    expect(events).toEqual(expected);
    expect(events.at(-1)).toMatchObject({ key: '', envelope: { eventType: 'config.reloaded' } });
    expect(await selectAuditEnd(app.services.db.read)).toBe(events.at(-1)?.envelope.sequence);
  });

  it('is read from anywhere on, so many at once', async () => {
    const sequences = async (after: number, limit?: number) =>
      (await read(after, limit)).map(({ envelope }) => envelope.sequence);
    expect(await sequences(1, 2)).toEqual([2, 3]);
    expect(await sequences(2)).toEqual((await sequences(0)).slice(2));
    expect(await sequences(await selectAuditEnd(app.services.db.read))).toEqual([]);
  });
});
