import { parseArgs } from 'node:util';

/** What `--help` prints. */
export const help = `Breaks Latchkey on purpose, on real brokers, and tells whether anything was lost.

Usage: npm run drill -- events [options]

  --only R1,R2,D5   only these (R1: kill -9, R2: the broker has troubles, D5: power cuts); default: all
  --kills N         how often the service is killed under load, half of it on NATS and half on Redis, default 200;
                    a tenth as often while it founds the organization, and while it migrates an old store
  --outage N        for how many seconds the broker is down, default 60
  --changes N       how many changes are made meanwhile, default 1000
  --cuts N          how many power cuts, default 100
  --short           a little of everything, as npm test runs it; writes no results
  --twins           runs each drill on copies of the service that do it wrongly; fails when one passes unnoticed
  --json            the results as JSON on the standard output, progress on the standard error
  --help            this text

R1  kill -9 under mixed load, at any moment and at those between commit and publish, publish and mark, then restart.
R2  the broker is down during changes; stands still; is full; comes back empty, and is sent everything again.
D5  the file operations of the service are recorded, and its data directory is made again as a power cut would leave it at
    many points: what was not synced is dropped, kept, or kept in part. The service must start on it with all that was
    acknowledged, and nothing by halves.

Every change has its one event in the log and at the broker, by id, in order, and no event is without its change. Needs
nats-server, redis-server and, for D5, strace: as root, missing ones are installed from Debian. Writes drill/results.json.
The exit code is 1 when a budget does not hold.
`;

const known = ['R1', 'R2', 'D5'];

function count(name, text) {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`--${name} must be a positive whole number, not "${text}"`);
}

function chosen(only) {
  if (only === undefined) return known;
  const wanted = only
    .toUpperCase()
    .split(',')
    .map((id) => id.trim());
  const unknown = wanted.find((id) => !known.includes(id));
  if (unknown !== undefined) throw new Error(`--only: there is no drill "${unknown}"`);
  return known.filter((id) => wanted.includes(id));
}

/** The options of the command line. Throws with one plain sentence when they make no sense. */
export function readOptions(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      only: { type: 'string' },
      kills: { type: 'string', default: '200' },
      outage: { type: 'string', default: '60' },
      changes: { type: 'string', default: '1000' },
      cuts: { type: 'string', default: '100' },
      short: { type: 'boolean', default: false },
      twins: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (!values.help && (positionals.length !== 1 || positionals[0] !== 'events')) {
    throw new Error('say which drill: npm run drill -- events (--help tells more)');
  }
  if (values.short) Object.assign(values, { kills: '4', outage: '1', changes: '40', cuts: '3' });
  return {
    ...values,
    only: chosen(values.only),
    kills: count('kills', values.kills),
    outageSeconds: count('outage', values.outage),
    changes: count('changes', values.changes),
    cuts: count('cuts', values.cuts),
  };
}
