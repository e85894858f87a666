import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { secondConnection } from '../../test/support/second-connection.ts';
import { addRelay } from '../../test/support/stored-relays.ts';
import { type Client, TestApp } from '../../test/support/test-app.ts';
import { day } from '../base/clock.ts';
import { Secret } from '../base/secret.ts';
import { encryptionWith, makeEncryptionKey } from '../keys/encryption.ts';
import { encryptAnew } from '../keys/rotate-encryption.ts';
import { pruneAudit, removeAudit, selectLastBefore } from './remove-audit.ts';
import { verifyAudit } from './verify-audit.ts';

const key = 'a1b2c3d4e5f60718'.repeat(4);

describe('how long records are kept (AUDIT-19)', () => {
  let app: TestApp;
  let admin: Client;
  beforeEach(async () => {
    app = await TestApp.start({ ENCRYPTION_KEY: key, AUDIT_RETENTION_DAYS: '30' });
    admin = await app.setUp();
  });
  afterEach(() => app.close());

  const sequences = async () => (await app.audit()).map(({ sequence }) => sequence);
  const verify = (input: Parameters<typeof verifyAudit>[1] = {}) =>
    verifyAudit(app.services.db, { key: app.services.encryption, ...input });
  const prune = () => pruneAudit(app.services);

  async function addGroups(client: Client, ...names: readonly string[]): Promise<void> {
    for (const name of names) expect((await client.post('/userGroups', { name, type: 'custom' })).status).toBe(201);
  }

  /** A log whose first records are too old, and how many those are. */
  async function ageOld(): Promise<number> {
    await addGroups(admin, 'one', 'two', 'three');
    const old = (await sequences()).length;
    app.clock.advance(20 * day);
    await addGroups(await app.signIn('ada@example.com'), 'four');
    app.clock.advance(10 * day + 1);
    return old;
  }

  it('older ones go, behind a checkpoint by which the rest is still proved, and the log goes on', async () => {
    const all = await app.audit();
    const old = await ageOld();
    const whole = await verify();
    expect([await prune(), await prune()]).toEqual([old, 0]);
    const left = await app.audit();
    expect(left[0].sequence).toBe(old + 1);
    expect(left.at(-1)).toMatchObject({ action: 'audit.removed', details: { upTo: old }, org_id: null });
    expect(await verify()).toMatchObject({ ok: true, records: left.length, removed: old });
    await addGroups(await app.signIn('ada@example.com'), 'five');
    expect(await verify(whole.ok ? { expected: whole.head } : {})).toMatchObject({ ok: true });
    expect(await verify({ expected: { sequence: 2, hash: all[1].hash } })).toMatchObject({
      sequence: 2,
      fault: 'removed',
    });
  });

  it('all may go, but for the record that says so', async () => {
    await ageOld();
    app.clock.advance(400 * day);
    const before = (await sequences()).length;
    expect(await prune()).toBe(before);
    expect((await app.audit()).map(({ action }) => action)).toEqual(['audit.removed']);
    expect(await verify()).toMatchObject({ ok: true, records: 1, removed: before });
  });

  it('nothing goes where nothing is said, nor what has not gone out yet', async () => {
    const old = await ageOld();
    delete app.environment['AUDIT_RETENTION_DAYS'];
    app.services.reloadConfig();
    expect(await prune()).toBe(0);
    app.environment['AUDIT_RETENTION_DAYS'] = '30';
    app.services.reloadConfig();
    const { names } = app.services.relays;
    await addRelay(app, 'audit-events/broker', 2);
    app.services.relays.names = () => [...names(), 'audit-events/broker'];
    expect([await prune(), (await sequences())[0]]).toEqual([2, 3]);
    app.services.relays.names = names;
    expect(await prune()).toBe(old - 2);
  });

  it('a checkpoint that was taken away, moved or made without the key is told', async () => {
    const old = await ageOld();
    await prune();
    const store = secondConnection(app);
    const set = (content: string) => store.prepare('UPDATE audit_checkpoints SET content = ?').run(content);
    const [{ content, name, made_at }] = store.prepare('SELECT * FROM audit_checkpoints').all() as never as [
      { content: string; name: string; made_at: number },
    ];
    const other = encryptionWith(makeEncryptionKey());
    const forged = await other.encrypt('audit-checkpoint', new Secret(`${old + 1}:${'0'.repeat(64)}`));
    for (const wrong of [forged, 'none', await app.services.encryption.encrypt('smtp', new Secret('1:00'))]) {
      set(wrong);
      expect(await verify()).toMatchObject({ ok: false, fault: 'checkpoint' });
    }
    set(content);
    store.prepare('DELETE FROM audit_log WHERE sequence = ?').run(old + 1);
    expect(await verify()).toMatchObject({ ok: false, sequence: old + 1, fault: 'missing' });
    store.prepare('DELETE FROM audit_checkpoints').run();
    expect(await verify()).toMatchObject({ ok: false, sequence: 1, fault: 'missing' });
    store
      .prepare('INSERT INTO audit_checkpoints (name, content, made_at) VALUES (?, ?, ?)')
      .run(name, content, made_at);
    store.close();
  });

  it('a checkpoint is carried over to a new encryption key (AUDIT-15)', async () => {
    await ageOld();
    await prune();
    const to = makeEncryptionKey();
    const origin = { requestId: 'test', network: 'local' };
    await encryptAnew(app.services, { from: new Secret(key), to }, origin);
    expect(await verify()).toMatchObject({ ok: false, fault: 'checkpoint' });
    expect(await verify({ key: encryptionWith(to) })).toMatchObject({ ok: true });
  });

  it('many go in batches, whatever the clock did meanwhile: what is left has no gap', async () => {
    app.clock.advance(-10 * day);
    await addGroups(await app.signIn('ada@example.com'), 'past');
    app.clock.advance(35 * day);
    // Those in the middle are old enough by now, and what comes before them is not.
    expect(await selectLastBefore(app.services.db.read, app.clock.now() - 30 * day)).toBe(0);
    expect(await prune()).toBe(0);
    const end = (await sequences()).length;
    expect(await removeAudit(app.services, end, { requestId: 'test', network: 'local' })).toBe(end);
    expect(await verify()).toMatchObject({ ok: true, removed: end });
  });
});
