import { parseArgs } from 'node:util';
import { chosenIds, positive } from '../harness/command-line.ts';
import { rows } from './budgets.ts';

const ids = [...new Set(rows.map((row) => row.id))];

/** What `--help` prints. */
export const help = `Measures Latchkey against its peers and tells whether each budget holds.

Usage: npm run bench -- [options]

  --only P1,P2   only these rows (${ids.join(', ')}); default: all
  --seconds N    length of one run of load, default 10 (or BENCH_SECONDS)
  --rounds N     how often each server has its turn, default 4 (or BENCH_ROUNDS)
  --minutes N    how long P13 puts load on the server, default 2 (or BENCH_MINUTES); the budget speaks of 10
  --json         the results as JSON on the standard output, progress on the standard error
  --help         this text

${rows.map((row) => `  ${row.id.padEnd(4)} ${row.what}${row.peer === undefined ? '' : `, against ${row.peer}`}`).join('\n')}

The servers take turns (A B A B), each pinned to one core with the load generator on another, and a row is the median of
the ratios of the rounds. P7 and P8 do the same with one server on all cores, with sign-ins or uploads and without; T9
compares known and unknown addresses, without rounds; P4, P9, P10, P13 and P14 use stores of up to 100,000 users and
1,000,000 tokens, seeded once and kept in bench/.cache; P11 has a mail server on the generator's core, P12 a NATS server (Debian package
nats-server). The packages of the peers are installed in bench/ when they are missing. Writes bench/results.json. A budget
that doesn't hold leaves the exit code 0; a row that could not be measured makes it 1.
`;

/**
 * The options of the command line, then of the environment, then the defaults: `{ help, json, rows, seconds, rounds, minutes }`.
 * Throws with one plain sentence when they make no sense.
 */
export function readOptions(args: string[], environment: NodeJS.ProcessEnv) {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string' },
      seconds: { type: 'string', default: environment['BENCH_SECONDS'] || '10' },
      rounds: { type: 'string', default: environment['BENCH_ROUNDS'] || '4' },
      minutes: { type: 'string', default: environment['BENCH_MINUTES'] || '2' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const chosen = chosenIds(values.only, ids);
  return {
    help: values.help,
    json: values.json,
    rows: rows.filter(({ id }) => chosen.includes(id)),
    seconds: positive('seconds', values.seconds),
    rounds: Math.ceil(positive('rounds', values.rounds)),
    minutes: positive('minutes', values.minutes),
  };
}
