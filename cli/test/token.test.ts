import { beforeAll, describe, expect, it, vi } from 'vitest';
import {
  ensureServerIsBuilt,
  readStore,
  ServerProcess,
  withDirectory,
} from '../../server/test/support/server-process.ts';
import type { Json } from '../../server/test/support/test-app.ts';
import { latchkey, latchkeyJson } from './command-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 60_000 });

const noToken = 'There is no such token, or it has ended already';

/** Makes a token; answers it with its id. */
async function make(server: ServerProcess, token: string, name: string): Promise<{ id: string; accessToken: string }> {
  const { status, body } = await server.call('POST', '/personal-access-tokens', { token, body: { name } });
  if (status !== 201) throw new Error(`no token: ${status}`);
  return body.token;
}

async function statusOf(server: ServerProcess, token: string): Promise<readonly [number, string | undefined]> {
  const { status, body } = await server.call('GET', '/org', { token });
  return [status, body.error?.code];
}

describe('latchkey token', () => {
  it('0: what it revokes, a running server refuses at the next verification, with all that descends (CLI-7, CLI-15, SCOPE-24)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const session = await server.setUp();
      const at = ['--data-dir', dataDir];
      const parent = await make(server, session, 'parent');
      const child = await make(server, parent.accessToken, 'child');
      const other = await make(server, session, 'other');
      // Twice: from the first time on, verification keeps them in memory.
      for (const { accessToken } of [parent, child, other, parent, child, other]) {
        expect(await statusOf(server, accessToken)).toEqual([200, undefined]);
      }
      const args = ['token', 'revoke', '--id', parent.id.toUpperCase(), '--reason', 'Laptop lost', ...at];
      expect(await latchkey(args)).toEqual({
        code: 0,
        signal: null,
        stdout: `Revoked ${parent.id}; tokens ended in all: 2\n`,
        stderr: '',
      });
      expect(await statusOf(server, parent.accessToken)).toEqual([401, 'TOKEN_REVOKED']);
      expect(await statusOf(server, child.accessToken)).toEqual([401, 'TOKEN_REVOKED']);
      expect(await statusOf(server, other.accessToken)).toEqual([200, undefined]);
      expect(await latchkeyJson('token', 'revoke', '--id', other.id, ...at)).toEqual({
        revoked: { tokenId: other.id, count: 1 },
      });
      expect(await statusOf(server, other.accessToken)).toEqual([401, 'TOKEN_REVOKED']);

      const { data } = (await server.call('GET', '/personal-access-tokens/admin?status=revoked', { token: session }))
        .body;
      const reasons = Object.fromEntries(data.map(({ id, revokeReason }: Json) => [id, revokeReason]));
      const reason = 'Laptop lost';
      expect(reasons).toEqual({ [parent.id]: reason, [child.id]: reason, [other.id]: 'Revoked by the operator' });
      const rows = readStore(dataDir, "SELECT * FROM audit_log WHERE action = 'token.revoked' ORDER BY sequence");
      const operator = { actor_user_id: null, actor_token_id: null, network: 'local', request_id: 'operator' };
      expect(rows).toMatchObject(rows.map(() => operator));
      const details = Object.fromEntries(rows.map((row) => [row.subject_id, JSON.parse(row.details)]));
      expect(details).toEqual({
        [parent.id]: { reason },
        [child.id]: { reason, descendsFrom: parent.id },
        [other.id]: { reason: 'Revoked by the operator' },
      });
      await server.end('SIGTERM');
    }));

  it("0: lists as the administrators' route does, and never a token itself (CLI-15, FIT-104, PAT-18 to PAT-22)", () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const session = await server.setUp();
      const at = ['--data-dir', dataDir];
      expect((await latchkey(['token', 'list', ...at])).stdout).toBe('There is none\n');
      const made: { id: string; accessToken: string }[] = [];
      for (const name of ['ÄRGER', 'second', 'third']) made.push(await make(server, session, name));
      const [first, second, third] = made.map(({ id }) => id);
      await latchkeyJson('token', 'revoke', '--id', String(second), ...at);
      const listed = async (...args: string[]) => latchkeyJson('token', 'list', ...args, ...at);
      const route = async (query: string) =>
        (await server.call('GET', `/personal-access-tokens/admin?${query}`, { token: session })).body;

      const asRoute = async (status: string) => {
        const [told, { data, pagination }] = await Promise.all([listed('--status', status), route(`status=${status}`)]);
        expect(told).toEqual({ total: pagination.total, tokens: data });
        return told;
      };
      const idsOf = ({ tokens }: Json) => tokens.map(({ id }: Json) => id);
      const [active, , , all] = await Promise.all(['active', 'revoked', 'expired', 'all'].map(asRoute));
      expect([idsOf(active), idsOf(all)]).toEqual([
        [third, first],
        [third, second, first],
      ]);
      const found = await Promise.all([
        listed(),
        listed('--search', 'ärger'),
        listed('--search', 'ADA@'),
        listed('--search', '%'),
        listed('--limit', '1'),
      ]);
      expect(found.map(({ total, ...rest }) => [total, idsOf(rest)])).toEqual([
        [2, [third, first]],
        [1, [first]],
        [2, [third, first]],
        [0, []],
        [2, [third]],
      ]);
      const { stdout } = await latchkey(['token', 'list', '--limit', '1', ...at]);
      const [heading, line, more] = stdout.split('\n');
      expect(heading).toMatch(/^ID +STATE +OWNER +NAME +EXPIRES +LAST USED +SCOPES$/);
      expect(line).toMatch(new RegExp(`^${third}  active +ada@example\\.com  third +\\S+Z +Never +\\S+$`));
      expect((await latchkey(['token', 'list', '--status', 'revoked', ...at])).stdout).toMatch(
        new RegExp(`\n${second}  revoked +ada@example`),
      );
      expect(more).toBe('and 1 more: --limit shows more of them');
      const text = JSON.stringify(all);
      for (const { accessToken } of made) expect(text).not.toContain(accessToken.split('.').at(-1));
      await server.end('SIGTERM');
    }));

  it('2, 3: changes nothing for what is wrong, ended, or nothing at all (CLI-6, PAT-16)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const at = ['--data-dir', dataDir];
      const expectEnd = async (args: string[], code: number, message: string) => {
        expect(await latchkey(['token', ...args, ...at])).toEqual({
          code,
          signal: null,
          stdout: '',
          stderr: `latchkey: ${message}\n`,
        });
      };
      const none = 'This store has no organization: latchkey org create makes one';
      await expectEnd(['list'], 3, none);
      await expectEnd(['revoke', '--id', '0123456789abcdef01234567'], 3, none);
      const session = await server.setUp();
      const { id } = await make(server, session, 'ended');
      await latchkeyJson('token', 'revoke', '--id', id, ...at);
      const kept = await make(server, session, 'kept');
      const [user] = readStore(dataDir, 'SELECT id FROM users');
      const wrongIds = [id, user.id, '0123456789abcdef01234567', 'x', '%', `${kept.id} `];
      await Promise.all(wrongIds.map((wrong) => expectEnd(['revoke', '--id', wrong], 3, noToken)));
      const tooLong = '--reason must have at most 500 characters';
      const wrongStatus = '--status must be one of active, expired, revoked, all, not "dead"';
      await Promise.all([
        expectEnd(['revoke'], 2, '--id is missing'),
        expectEnd(['revoke', '--id', kept.id, '--reason', 'x'.repeat(501)], 2, tooLong),
        expectEnd(['list', '--status', 'dead'], 2, wrongStatus),
        expectEnd(['list', '--limit', '0'], 2, '--limit must be a whole number from 1 to 10000, not "0"'),
      ]);
      expect(await statusOf(server, kept.accessToken)).toEqual([200, undefined]);
      await server.call('DELETE', '/org', { token: session });
      const deleted = 'The organization is deleted: latchkey org restore brings it back';
      await expectEnd(['list'], 3, deleted);
      await expectEnd(['revoke', '--id', kept.id], 3, deleted);
      const { code, stderr } = await latchkey(['token', 'list', ...at, '--json']);
      expect({ code, ...JSON.parse(stderr) }).toEqual({ code: 3, error: { code: 'REFUSED', message: deleted } });
      await server.end('SIGTERM');
    }));
});
