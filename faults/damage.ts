import { createHash } from 'node:crypto';
import {
  closeSync,
  cpSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { removeFolder, temporaryFolder } from '../harness/processes.ts';
import { inStore } from './embedded-store.ts';
import { latchkey } from './operator.ts';
import type { Outcome, SuiteRow } from './rows.ts';
import { Service } from './service.ts';

const users = 2_000;
const pageBytes = 4_096;

/** Puts noise over a part of a file. */
function scribble(file: string, at: number, bytes: number): void {
  const handle = openSync(file, 'r+');
  writeSync(handle, Buffer.alloc(bytes, 0xa5), 0, bytes, at);
  closeSync(handle);
}

/** The pages that hold the rows of users, without the one that says where they are. */
function pagesOfUsers(dataDir: string) {
  return inStore(dataDir, (store) => {
    const root = Number(store.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'users'").pluck().get());
    const last = statSync(join(dataDir, 'latchkey.db')).size / pageBytes;
    return { root, last };
  });
}

const storeOf = (dataDir: string) => join(dataDir, 'latchkey.db');

interface Damage {
  readonly what: string;
  /** What the one line has to say. */
  readonly says: RegExp;
  /** Damages a data directory. */
  do(dataDir: string): unknown;
}

const damages: readonly Damage[] = [
  {
    what: 'noise over a page in the middle',
    says: /damaged.*backup/,
    do: (dataDir) => scribble(storeOf(dataDir), Math.floor(pagesOfUsers(dataDir).last / 2) * pageBytes, pageBytes),
  },
  {
    what: 'noise over the root of a table',
    says: /damaged.*backup/,
    do: (dataDir) => scribble(storeOf(dataDir), (pagesOfUsers(dataDir).root - 1) * pageBytes, pageBytes),
  },
  {
    what: 'noise over the first page',
    says: /damaged.*backup/,
    do: (dataDir) => scribble(storeOf(dataDir), 0, pageBytes),
  },
  {
    what: 'the second half is cut off',
    says: /damaged.*backup/,
    do: (dataDir) => truncateSync(storeOf(dataDir), Math.floor(pagesOfUsers(dataDir).last / 2) * pageBytes),
  },
  {
    what: 'another file in its place',
    says: /damaged.*backup/,
    do: (dataDir) => writeFileSync(storeOf(dataDir), 'this is no store\n'.repeat(1_000)),
  },
  {
    what: 'a newer schema',
    says: /has schema 999.*newer release/,
    do: (dataDir) =>
      inStore(dataDir, (store) => store.exec("INSERT INTO schema_migrations VALUES (999, 'of-tomorrow', 0)")),
  },
  {
    what: 'half a migration',
    says: /cannot be brought to schema \d+ .*left as it was/,
    // The step of the relays was done, and it was not noted; nothing of later ones is there.
    do: (dataDir) => inStore(dataDir, (store) => store.exec('DELETE FROM schema_migrations WHERE version >= 6')),
  },
  {
    what: 'a key file cut short',
    says: /signing-keys\.json/,
    do: (dataDir) => truncateSync(join(dataDir, 'signing-keys.json'), 20),
  },
];

/** The content of every file that counts. */
function contents(dataDir: string) {
  const names = readdirSync(dataDir).filter((name) => !/-shm$|-wal$|\.lock/.test(name));
  return names.sort().map((name) => {
    return [
      name,
      createHash('sha256')
        .update(readFileSync(join(dataDir, name)))
        .digest('hex'),
    ];
  });
}

/** D6: starts the service on what was damaged; it has to end at once with one clear line, and leave all as it was. */
async function refuses({ entry, whole, damage }: { entry: string; whole: string; damage: Damage }) {
  const folder = temporaryFolder();
  const dataDir = join(folder, 'data');
  cpSync(whole, dataDir, { recursive: true });
  damage.do(dataDir);
  const before = contents(dataDir);
  const service = new Service({ entry, dataDir });
  const hasStarted = await service.start().then(
    () => true,
    () => false,
  );
  if (hasStarted) {
    await service.kill();
    return { faults: [`${damage.what}: it started`], said: '' };
  }
  const { code } = await service.program.ended;
  const said = service.program.said().trim().replaceAll(dataDir, 'DATA_DIR');
  const faults: string[] = [];
  if (code !== 1) faults.push(`the exit code is ${code}`);
  if (said.split('\n').length !== 1 || !said.startsWith('latchkey: ')) faults.push(`said: ${said}`);
  if (!damage.says.test(said)) faults.push(`does not say what it is: ${said}`);
  if (JSON.stringify(contents(dataDir)) !== JSON.stringify(before)) faults.push('something was changed');
  removeFolder(folder);
  return { faults: faults.map((fault) => `${damage.what}: ${fault}`), said };
}

let whole: string | null = null;

/** The data directory that is damaged in copies; made once. */
function wholeDirectory(entry: string): string {
  if (whole === null) {
    whole = join(temporaryFolder(), 'data');
    latchkey(entry, ['seed', '--users', String(users), '--tokens', '500', '--data-dir', whole]);
    // The server makes its keys.
    inStore(whole, (store) => store.pragma('wal_checkpoint(TRUNCATE)'));
  }
  return whole;
}

async function damageRow(damage: Damage, entry: string): Promise<Outcome> {
  const dataDir = wholeDirectory(entry);
  if (!readdirSync(dataDir).includes('signing-keys.json')) {
    const service = new Service({ entry, dataDir });
    await service.start();
    await service.stop();
  }
  const { faults, said } = await refuses({ entry, whole: dataDir, damage });
  return { faults, done: faults.length === 0 ? 'refused' : '', note: `${damage.what}: ${said}` };
}

/** The rows of the damage suite, in order. */
export const damageRows: readonly SuiteRow[] = damages.map((damage) => ({
  id: 'D6',
  what: damage.what,
  expected: 'no start, one clear line',
  run: ({ entry }) => damageRow(damage, entry),
}));
