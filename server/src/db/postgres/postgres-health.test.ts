import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MonotonicClock } from '../../../test/support/event-reader.ts';
import { secondConnection } from '../../../test/support/second-connection.ts';
import type { Client, TestApp } from '../../../test/support/test-app.ts';
import { TwoNodes } from '../../../test/support/two-nodes.ts';
import { second } from '../../base/clock.ts';

/**
 * Simulates PostgreSQL's error for a table that has to grow on a full disk; the others have room left in their pages.
 */
const full = `create function refuse() returns trigger language plpgsql as $$
  begin raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
  create trigger refuse before insert on users execute function refuse();`;

describe('a disk of PostgreSQL that is full', () => {
  let nodes: TwoNodes;
  let admin: Client;
  let monotonic: MonotonicClock;
  beforeEach(async () => {
    nodes = await TwoNodes.start();
    admin = await nodes.a.setUp();
    monotonic = new MonotonicClock({ stands: true });
  });
  afterEach(async () => {
    monotonic.restore();
    await nodes.close();
  });

  function run(sql: string): void {
    const store = secondConnection(nodes.a);
    store.exec(sql);
    store.close();
  }
  const ready = async (app: TestApp) => (await app.anonymous.get('//health/ready')).status;
  const user = { fullName: 'Grace Hopper', email: 'grace@example.com' };

  it('503: what finds no room, and GET /health/ready, although smaller changes are made; what is read is 200 (STORE-12, STORE-15, RUN-4, ERR-27)', async () => {
    run(full);
    const refused = await admin.post('/users', user);
    expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
      503,
      'UNAVAILABLE',
      '5',
    ]);
    expect((await admin.patch('/org', { shortName: 'Engines' })).status).toBe(200);
    expect([await ready(nodes.a), (await nodes.a.anonymous.get('//health/live')).status]).toEqual([503, 200]);
    const { status, body } = await admin.get('/users');
    expect([status, body.length]).toEqual([200, 1]);
    // Each node tells what it met itself.
    expect(await ready(nodes.b)).toBe(200);
    expect((await nodes.atB(admin).post('/users', user)).status).toBe(503);
    expect(await ready(nodes.b)).toBe(503);
  });

  it('200: GET /health/ready finds out by itself that there is space again (STORE-15, RUN-4)', async () => {
    run(full);
    await admin.post('/users', user);
    monotonic.advance(2 * second);
    expect(await ready(nodes.a)).toBe(503);
    run('drop function refuse cascade');
    monotonic.advance(2 * second);
    expect(await ready(nodes.a)).toBe(200);
    expect((await admin.post('/users', user)).status).toBe(201);
  });
});
