import { beforeAll, describe, expect, it, vi } from 'vitest';
import { secondConnection } from '../../server/test/support/second-connection.ts';
import {
  ensureServerIsBuilt,
  readStore,
  ServerProcess,
  withDirectory,
} from '../../server/test/support/server-process.ts';
import { latchkey, latchkeyJson } from './command-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 60_000 });

describe('latchkey user unlink', () => {
  it('0: forgets the link and ends the sessions of a running server; 3: no such user (CLI-15, FIT-8)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const token = await server.setUp();
      const [{ id }] = readStore(dataDir, 'SELECT id FROM users') as [{ id: string }];
      const store = secondConnection({ dataDir });
      const columns = 'issuer, subject, user_id, created_at';
      store.prepare(`INSERT INTO external_identities (${columns}) VALUES ('https://id.example', 'ada', ?, 1)`).run(id);
      store.close();
      const unlink = ['user', 'unlink', '--data-dir', dataDir, '--user'];
      expect((await server.call('GET', '/org', { token })).status).toBe(200);
      expect(await latchkey([...unlink, id.toUpperCase()])).toMatchObject({
        code: 0,
        stdout: `Unlinked ${id}; links forgotten: 1, sessions ended: 1\n`,
      });
      expect((await server.call('GET', '/org', { token })).status).toBe(401);
      expect(await latchkeyJson(...unlink, id)).toEqual({ userId: id, unlinked: 0, ended: 0 });
      expect(await latchkey([...unlink, '0'.repeat(24)])).toMatchObject({
        code: 3,
        stderr: 'latchkey: There is no such user\n',
      });
      const rows = readStore(
        dataDir,
        "SELECT actor_user_id, subject_id, request_id FROM audit_log WHERE action = 'user.unlinked'",
      );
      expect(rows).toEqual([{ actor_user_id: null, subject_id: id, request_id: 'operator' }]);
    }));
});
