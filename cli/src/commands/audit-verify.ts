import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { storeOptions, text } from '../options.ts';

const headForm = /^(\d{1,15}):([0-9a-f]{64})$/i;

function readHead(given: string | null) {
  if (given === null) return null;
  const [, sequence, hash] = headForm.exec(given) ?? [];
  if (sequence !== undefined && hash !== undefined) return { sequence: Number(sequence), hash: hash.toLowerCase() };
  throw new CommandError('usage', '--expect must be a number and a hash, as audit verify prints them: 1234:9f86d0…');
}

/** Rules: AUDIT-11, AUDIT-20. */
export const auditVerify = command({
  name: 'audit verify',
  summary: 'Verify the whole audit log: whether any record was changed, removed or inserted',
  details:
    'Prints the number and the hash of the last record. Keep them out of reach of everyone who can write to the store: given ' +
    'to --expect later, they prove that everything up to there is unchanged, even against someone who rewrote the log ' +
    'and its hashes. It tells how many records were erased with a user; only a user who is erased counts, and only a record that is signed. Without ENCRYPTION_KEY it believes signatures, and says how many. It changes nothing, and may run while a server runs. A broken log ends it with exit code 1.',
  examples: [
    'audit verify',
    'audit verify --expect 1234:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  ],
  options: {
    ...storeOptions,
    expect: text('number:hash', 'of a record, as it was printed earlier'),
  },
  async run({ dataDir, expect }, context) {
    const { operatorConfig, withConfiguredStore } = await import('../operator-store.ts');
    const { presentKey } = await import('../present-key.ts');
    const { auditFaults, verifyAudit } = await import('../../../server/src/audit-log/verify-audit.ts');
    const expected = readHead(expect);
    const config = operatorConfig(context, dataDir);
    const verdict = await withConfiguredStore(config, ({ db }) =>
      verifyAudit(db, { expected, key: presentKey(config), progress: context.progress }),
    );
    if (!verdict.ok) {
      const { sequence, fault } = verdict;
      const message = `The audit log is broken at record ${sequence}: ${auditFaults[fault]}`;
      throw new CommandError('failed', message, { more: { broken: { sequence, fault } } });
    }
    const { records, erased, erasedSince, removed = 0, unproved = 0, head } = verdict;
    const ofThem = erased > 0 ? `, ${erased} of them erased with their users` : '';
    const earlier = removed > 0 ? `, after ${removed} that were removed behind a checkpoint` : '';
    const since = erasedSince > 0 ? [`${erasedSince} of those up to --expect were erased after it was printed`] : [];
    const unknown =
      unproved > 0
        ? [`${unproved} signatures of erasures or checkpoints were not proved: ENCRYPTION_KEY is not at hand`]
        : [];
    const text = `The audit log is sound: ${records} records${ofThem}${earlier}`;
    const data = {
      ok: true,
      records,
      ...(removed > 0 ? { removed } : {}),
      erased,
      erasedSince,
      ...(unproved > 0 ? { unproved } : {}),
      head,
    };
    return { data, text: [text, ...since, ...unknown, `${head.sequence}:${head.hash}`].join('\n') };
  },
});
