import { fileURLToPath } from 'node:url';
import { collect, type Program, temporaryFolder } from '../harness/processes.ts';
import { startNode } from './pinned.ts';
import type { Target } from './rows.ts';

const startSecondsMax = 30;

function firstLine(child: Program, name: string): Promise<string> {
  const [output, complaint] = [collect(child.stdout), collect(child.stderr)];
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`${name} was not ready in ${startSecondsMax} s`)),
      startSecondsMax * 1000,
    );
    child.stdout.on('data', () => {
      const end = output().indexOf('\n');
      if (end === -1) return;
      clearTimeout(timer);
      resolve(output().slice(0, end));
    });
    void child.ended.then(() => {
      clearTimeout(timer);
      reject(new Error(`${name} did not start: ${complaint().trim()}`));
    });
  });
}

/**
 * Starts a peer (`bare-fastify` or `better-auth`) that answers `record`.
 */
export async function startPeer(name: string, record: object): Promise<Target> {
  const child = startNode([fileURLToPath(new URL(`./peers/${name}.mjs`, import.meta.url))], {
    core: 'server',
    env: { NODE_ENV: 'production', DATA_DIR: temporaryFolder(), USER_RECORD: JSON.stringify(record) },
  });
  const { port, headers } = JSON.parse(await firstLine(child, name));
  return { name, pid: child.pid, port, path: `/api/v1/users/${'_id' in record ? String(record._id) : ''}`, headers };
}

/** A record of the shape and size of Latchkey's, for runs in which Latchkey takes no part. */
export const sampleRecord = {
  _id: '674ae3f0c1d2e3f405162738',
  slug: 'user-1001',
  fullName: 'Ada Lovelace',
  firstName: 'Ada',
  lastName: 'Lovelace',
  email: 'ada@example.com',
  hasLoggedIn: true,
  orgId: '674ae3f0c1d2e3f405162737',
  isDeleted: false,
  createdAt: '2026-11-27T20:17:00.123Z',
  updatedAt: '2026-11-27T20:17:00.123Z',
};
