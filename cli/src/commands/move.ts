import { resolve } from 'node:path';
import type { Outcome } from '../command.ts';
import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import type { Moved } from '../move/move-store.ts';
import { flag, storeOptions, text } from '../options.ts';
import type { RuntimeContext } from '../runtime-context.ts';

const shownDigits = 16;

/** Returns the operator's next steps, with an encryption key of the server's own or one from the configuration. */
function nextSteps(dataDir: string, hasKey: boolean): readonly string[] {
  const place = resolve(dataDir);
  const key = hasKey ? 'ENCRYPTION_KEY as it is' : `ENCRYPTION_KEY_FILE=${place}/encryption-key`;
  return [
    `Stop the server that runs on ${place}: it reads the old store, and learns of no revocation any more`,
    `Start the server with DATABASE_URL, set to the address that was given here, and ${key}; every node needs the same key`,
    `Keep ${place} as the way back: latchkey move --back`,
  ];
}

function outcome({ mark, isResumed }: Moved, seconds: number, next: readonly string[]): Outcome {
  const { move: _id, ...moved } = mark;
  const tables = mark.tables.map(({ table, rows, digest }) => `  ${table}: ${rows} ${digest.slice(0, shownDigits)}`);
  const counters = Object.entries(mark.counters).map(([name, value]) => `${name} ${value}`);
  const text = [
    isResumed ? `Finished the move to ${mark.to} of ${mark.movedAt}` : `Moved to ${mark.to} in ${seconds} s`,
    'Rows and the beginnings of their digests, the same on both sides:',
    ...tables,
    `Counters: ${counters.join(', ')}`,
    `Signing keys: ${mark.signingKeys}`,
    'Next:',
    ...next.map((step, place) => `  ${place + 1}. ${step}`),
  ];
  return { data: { moved: { ...moved, isResumed, seconds }, next }, text: text.join('\n') };
}

async function goBack({ ask }: RuntimeContext, dataDir: string, yes: boolean): Promise<Outcome> {
  const { isMoved, unmarkMoved } = await import('../../../server/src/db/move/moved.ts');
  if (!isMoved(dataDir)) throw new CommandError('refused', `The store in ${dataDir} was not moved: it is in use`);
  const warning = 'Writes since the move are not in the embedded store, revocations included';
  if (!yes) {
    const response = await ask(`${warning}. No server may run on the database any more. Type back to use it again: `);
    if (response === null) throw new CommandError('refused', `${warning}: confirm it with --yes, or at a terminal`);
    if (response.trim() !== 'back') throw new CommandError('refused', 'That is not back: nothing was changed');
  }
  unmarkMoved(dataDir);
  const text = `The store in ${dataDir} is used again, as it was at the move. Unset DATABASE_URL and start the server.`;
  return { data: { back: { dataDir } }, text };
}

/** Rules: CLI-30, CLI-31, CLI-32. */
export const move = command({
  name: 'move',
  summary: 'Move the embedded store into PostgreSQL',
  details:
    'May run while the server runs: it continues to serve reads and to check tokens, and answers 503 to writes, until the move ' +
    'has ended and until it is stopped. The database must be empty. Every table is copied, read again and ' +
    'compared by its number of rows and a digest; the signing keys go into the database, encrypted with the encryption ' +
    'key. The embedded store stays as it is, marked as moved. Without --to it is moved to DATABASE_URL, which keeps a ' +
    'password out of the list of processes.',
  examples: [
    'move --to postgres://latchkey@db.example.com/latchkey',
    'move --data-dir /var/lib/latchkey --json',
    'move --back --data-dir /var/lib/latchkey',
  ],
  options: {
    ...storeOptions,
    to: text('address', 'the database, as postgres://user:password@host:5432/latchkey'),
    force: flag('delete what an interrupted move left in the database, and start over'),
    back: flag('have the embedded store used again, as it was when it was moved'),
    yes: flag('with --back: do not ask'),
  },
  async run({ dataDir, to, force, back, yes }, context) {
    if (back && (to !== null || force)) throw new CommandError('usage', '--back stands without --to and --force');
    if (yes && !back) throw new CommandError('usage', '--yes is for --back');
    const { moveConfig } = await import('../operator-store.ts');
    const config = moveConfig(context, { dataDir, to });
    if (back) return goBack(context, config.dataDir, yes);
    if (config.databaseUrl === null) throw new CommandError('usage', 'name the database: --to, or DATABASE_URL');
    const { moveStore } = await import('../move/move-store.ts');
    const startedMs = performance.now();
    const { progress } = context;
    const setting = to === null ? 'DATABASE_URL' : '--to';
    const moved = await moveStore({ config, to: config.databaseUrl, setting, restart: force, progress });
    const seconds = Number(((performance.now() - startedMs) / 1_000).toFixed(1));
    return outcome(moved, seconds, nextSteps(config.dataDir, config.encryptionKey !== null));
  },
});
