import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
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

/** Gets a token for a service; answers what the server says. */
function tokenFor(server: ServerProcess, { clientId, clientSecret }: Json): Promise<{ status: number; body: Json }> {
  const body = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
  return server.call('POST', '/oauth2/token', { body });
}

async function useOf(server: ServerProcess, token: string): Promise<number> {
  return (await server.call('POST', '/users/updateAppConfig', { token })).status;
}

function audited(dataDir: string): Json[] {
  const rows = readStore(
    dataDir,
    "SELECT * FROM audit_log WHERE action IN ('service.created', 'service.deleted') ORDER BY sequence",
  );
  return rows.map((row) => ({ ...row, details: JSON.parse(row.details) }));
}

describe('latchkey service', () => {
  it('0: registers, lists and ends services while a server runs (CLI-4, CLI-7, CLI-14, SERVICE-10)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const session = await server.setUp();
      const at = ['--data-dir', dataDir];
      const input = ['--name', 'front end', '--scopes', 'fetch:config, EVENTS_READ'];
      const { service } = await latchkeyJson('service', 'create', ...input, ...at);
      const { clientId, clientSecret, ...rest } = service;
      expect(rest).toEqual({
        name: 'front end',
        scopes: ['FETCH_CONFIG', 'EVENTS_READ'],
        createdAt: expect.any(String),
      });

      const issued = await tokenFor(server, service);
      expect(issued.status).toBe(200);
      const token: string = issued.body.access_token;
      expect(await useOf(server, token)).toBe(200);
      const listed = await server.call('GET', '/service-clients', { token: session });
      const { services } = await latchkeyJson('service', 'list', ...at);
      expect(services).toEqual(listed.body.clients);
      expect(services).toMatchObject([{ clientId, ...rest, lastUsedAt: expect.any(String) }]);
      const words = await latchkey(['service', 'list', ...at]);
      expect(words).toMatchObject({
        code: 0,
        stdout: `${clientId}  FETCH_CONFIG,EVENTS_READ  front end\n`,
        stderr: '',
      });

      const { revoked } = await latchkeyJson('service', 'revoke', '--id', clientId.toUpperCase(), ...at);
      expect(revoked).toEqual({ clientId });
      expect(await useOf(server, token)).toBe(401);
      expect((await tokenFor(server, service)).status).toBe(401);
      expect((await latchkey(['service', 'list', ...at])).stdout).toBe('No service is registered\n');

      const [{ id: orgId }] = readStore(dataDir, 'SELECT id FROM organizations');
      const operator = {
        org_id: orgId,
        actor_user_id: null,
        subject_id: clientId,
        network: 'local',
        request_id: 'operator',
      };
      const details = { name: 'front end', scopes: rest.scopes };
      expect(audited(dataDir)).toMatchObject([
        { action: 'service.created', ...operator, details },
        { action: 'service.deleted', ...operator },
      ]);
      const { stdout } = await server.end('SIGTERM');
      const files = readdirSync(dataDir).map((name) => readFileSync(join(dataDir, name), 'latin1'));
      for (const text of [stdout, ...files])
        for (const secret of [clientSecret, token]) expect(text).not.toContain(secret);
    }));

  it('0: prints the secret once, in words, and works on the store of a stopped server (CLI-7, SERVICE-7)', () =>
    withDirectory(async (dataDir) => {
      const first = await ServerProcess.start({ DATA_DIR: dataDir });
      await first.setUp();
      await first.end('SIGTERM');
      const { code, stdout } = await latchkey([
        'service',
        'create',
        '--name',
        'relay',
        '--scopes',
        'FETCH_CONFIG',
        '--data-dir',
        dataDir,
      ]);
      expect(code).toBe(0);
      const [, clientId, clientSecret] =
        /^Registered relay\.\nclient id: {5}([0-9a-f]{24})\nclient secret: (\S+)\n$/.exec(stdout) ?? [];
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      const { status, body } = await tokenFor(server, { clientId, clientSecret });
      expect(status).toBe(200);
      expect(await useOf(server, body.access_token)).toBe(200);
      await server.end('SIGTERM');
    }));

  it('0: needs no organization, and outlives one that is deleted (CLI-14)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const create = async (name: string) =>
        (await latchkeyJson('service', 'create', '--name', name, '--scopes', 'EVENTS_READ', '--data-dir', dataDir))
          .service;
      const early = await create('early');
      const token = await server.setUp();
      await server.call('DELETE', '/org', { token });
      const late = await create('late');
      for (const service of [early, late]) {
        const { status, body } = await tokenFor(server, service);
        expect([service.name, status]).toEqual([service.name, 200]);
        expect((await server.call('GET', '/events', { token: body.access_token })).status).toBe(200);
      }
      const { services } = await latchkeyJson('service', 'list', '--data-dir', dataDir);
      expect(services.map(({ name }: Json) => name)).toEqual(['early', 'late']);
      for (const { clientId } of [early, late])
        await latchkeyJson('service', 'revoke', '--id', clientId, '--data-dir', dataDir);
      expect(audited(dataDir).map(({ org_id }) => org_id)).toEqual([null, null, null, null]);
      await server.end('SIGTERM');
    }));

  it('2, 3: changes nothing for a wish that is not right, or a service that is none (CLI-6, SERVICE-8)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      const token = await server.setUp();
      const at = ['--data-dir', dataDir];
      const problem = '--name or --scopes is not valid; see latchkey service create --help';
      const wrong: [string[], string][] = [
        [['--name', 'x', '--scopes', 'USER_LOOKUP,org:read'], problem],
        [['--name', 'x', '--scopes', ','], problem],
        [['--name', '  ', '--scopes', 'USER_LOOKUP'], problem],
        [['--name', 'x\u202ey', '--scopes', 'USER_LOOKUP'], problem],
        [['--name', '', '--scopes', 'USER_LOOKUP'], '--name must not be empty'],
        [['--scopes', 'USER_LOOKUP'], '--name is missing'],
        [['--name', 'x'], '--scopes is missing'],
      ];
      const ends = await Promise.all(wrong.map(([args]) => latchkey(['service', 'create', ...args, ...at])));
      const expected = wrong.map(([, message]) => ({
        code: 2,
        signal: null,
        stdout: '',
        stderr: `latchkey: ${message}\n`,
      }));
      expect(ends).toEqual(expected);
      expect(readStore(dataDir, 'SELECT id FROM service_clients')).toEqual([]);
      const { service } = await latchkeyJson('service', 'create', '--name', 'x', '--scopes', 'USER_LOOKUP', ...at);
      await latchkeyJson('service', 'revoke', '--id', service.clientId, ...at);
      const [{ id: orgId }] = readStore(dataDir, 'SELECT id FROM organizations');
      const ids = [service.clientId, orgId, '0123456789abcdef01234567', 'x', '%'];
      const refused = await Promise.all(ids.map((id) => latchkey(['service', 'revoke', '--id', id, ...at, '--json'])));
      const error = { code: 'REFUSED', message: 'There is no such service, or it has ended already' };
      for (const { code, stderr } of refused) expect({ code, ...JSON.parse(stderr) }).toEqual({ code: 3, error });
      expect((await latchkey(['service', 'revoke', ...at])).stderr).toBe('latchkey: --id is missing\n');
      expect(audited(dataDir)).toHaveLength(2);
      expect((await server.call('GET', '/org', { token })).status).toBe(200);
      await server.end('SIGTERM');
    }));
});
