import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ServiceProcess } from '../../../harness/service-process.ts';
import { ensureNode, nodeVersions } from '../../../scripts/node-versions.mjs';
import { onePixel } from '../support/made-pictures.ts';
import { ensureServerIsBuilt, withDirectory } from '../support/server-process.ts';

const majors = [22, 24] as const;

// The first time fetches and compiles.
vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });
beforeAll(ensureServerIsBuilt);

describe.each(majors)('Node.js %s', (major) => {
  it('starts, sets up, signs in, lets a token live and die, converts a picture, stops (FIT-110)', () =>
    withDirectory(async (dataDir) => {
      const { node, server: entry } = await ensureNode(major);
      const server = new ServiceProcess({ env: { DATA_DIR: dataDir }, entry, node });
      await server.start();
      const session = await server.setUp();
      const { body, status } = await server.call('POST', '/personal-access-tokens', {
        token: session,
        body: { name: 'on another release' },
      });
      const { id, accessToken } = body.token;
      const statusWith = async (token: string) => (await server.call('GET', '/users', { token })).status;
      expect([status, await statusWith(accessToken)]).toEqual([201, 200]);
      await server.call('DELETE', `/personal-access-tokens/${id}`, { token: session });
      expect(await statusWith(accessToken)).toBe(401);

      const form = new FormData();
      form.append('file', new Blob([new Uint8Array(onePixel())], { type: 'image/png' }), 'logo.png');
      const upload = await fetch(`${server.url}/api/v1/org/logo`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${session}` },
        body: form,
      });
      expect(upload.status).toBe(201);
      expect(nodeVersions[major].startsWith(`${major}.`)).toBe(true);
      await server.stop();
    }));
});
