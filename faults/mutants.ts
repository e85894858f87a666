import { type BrokerClass, Nats, Redis } from './brokers.ts';
import type { Edit } from './builds.ts';
import { clockRows } from './clock.ts';
import { damageRows } from './damage.ts';
import { diskRows } from './disk-troubles.ts';
import { troubled } from './failover.ts';
import { killFounding } from './founding.ts';
import { killUnderLoad } from './kills.ts';
import { loadRows } from './load.ts';
import { killMigration } from './migrations.ts';
import { outage } from './outages.ts';
import { cutPower } from './power-cuts.ts';
import type { Given, Outcome, SuiteRow } from './rows.ts';
import { stores } from './stores.ts';
import { openEverySchema } from './upgrades.ts';

/** In the relay: moves on before anything is sent. */
const markFirst: Edit = {
  file: 'outbox/relay/relay.js',
  from: 'const { delivered, failure } = await this.#subscription.sink.deliver(events);',
  to: `await this.#advance(relay, events.at(-1).envelope.sequence, events.length);
        const { delivered, failure } = await this.#subscription.sink.deliver(events);`,
};

/** In the relay: takes a failure for an arrival. */
const swallow = {
  file: 'outbox/relay/relay.js',
  from: 'const { delivered, failure } = await this.#subscription.sink.deliver(events);',
  to: `await this.#subscription.sink.deliver(events);
        const [delivered, failure] = [events.length, null];`,
};

/** Events are written in a transaction of their own, after that of the change. */
const writeLater = [
  {
    file: 'outbox/outbox.js',
    from: "await tx.insertInto('outbox').values(rows).execute();",
    to: '(globalThis.latchkeyLate ??= []).push(...rows);',
  },
  {
    file: 'db/sqlite/sqlite.js',
    from: 'return await health.watch(() => whenFree(run));',
    to: `const done = await health.watch(() => whenFree(run));
            const late = globalThis.latchkeyLate?.splice(0) ?? [];
            if (late.length > 0) await write.transaction().execute((tx) => tx.insertInto('outbox').values(late).execute());
            return done;`,
  },
];

/** What comes after the first transaction comes a moment later, so that kills find the time between. */
const later = 'await new Promise((resolve) => setTimeout(resolve, 150));';

/** An organization is founded, and then its administrator gets the password. */
const foundByHalves = [
  {
    file: 'features/org/public.js',
    from: 'await setPassword(tx, { userId, passwordHash, nowMs });',
    to: 'globalThis.latchkeyRest = (next) => setPassword(next, { userId, passwordHash, nowMs });',
  },
  {
    file: 'features/org/create-org.js',
    from: 'const record = toOrganizationRecord(organization);',
    to: `${later} await services.db.transaction(globalThis.latchkeyRest); const record = toOrganizationRecord(organization);`,
  },
];

/** A step of a migration is taken, and then it is noted that it was. */
const noteLater = {
  file: 'db/schema/migrate.js',
  from: 'await up(tx);',
  to: `await up(tx);
        }).then(async () => {
            ${later}
            return db.transaction(async (tx) => {`,
};
const noteLaterEnd = {
  file: 'db/schema/migrate.js',
  from: 'applied_at: clock.now() }).execute();\n        });',
  to: 'applied_at: clock.now() }).execute();\n        }); });',
};

const noSync = {
  file: 'db/sqlite/sqlite.js',
  from: "writer.pragma('synchronous = FULL')",
  to: "writer.pragma('synchronous = OFF')",
};

/** A change is answered as soon as its statements are done. */
const answerFirst = {
  file: 'db/sqlite/sqlite.js',
  from: 'return await health.watch(() => whenFree(run));',
  to: `return await new Promise((resolve, reject) => {
                const early = (begun) => write.transaction().execute(async (tx) => {
                    begun();
                    resolve(await work(tx));
                });
                health.watch(() => whenFree(early)).catch(reject);
            });`,
};

const lookAtNothing = {
  file: 'db/sqlite/sqlite.js',
  from: "writer.pragma('quick_check(1)', { simple: true }) !== 'ok'",
  to: 'false',
};

/** The time of day as it was at the start, and what has passed since. */
const countedTime = { file: 'base/clock.js', from: 'Date.now()', to: 'performance.timeOrigin + performance.now()' };

const letAllIn = {
  file: 'http/server/load-shedder.js',
  from: 'turnedAway += 1;\n        return true;',
  to: 'return false;',
};

const forgetUses = { file: 'process/compose.js', from: ', uses.close()]', to: ']' };

/** A step takes something away that an earlier release had. */
const loseInStep = {
  file: 'db/schema/migrations/0005-sign-in-and-services.js',
  from: 'export async function up(tx) {',
  to: "export async function up(tx) { await tx.deleteFrom('settings').execute();",
};

/** The row of a suite, short. */
const rowOf =
  (rows: readonly SuiteRow[], what: string) =>
  async ({ entry, tell }: Given): Promise<Outcome> => {
    const row = rows.find((one) => one.what === what);
    if (!row) throw new Error(`there is no row "${what}"`);
    return row.run({ entry, tell, short: true, seconds: 4, store: await stores.sqlite() });
  };

const isDown = (Kind: BrokerClass) => (given: Given) =>
  outage('down', { Kind, ...given, outageSeconds: 3, changes: 60 });

/** Answers half a second after everything is written, committed or not. */
const answerEarly = {
  file: 'db/postgres/postgres-transactions.js',
  from: '() => attempt(read, { work, untilMs })',
  to: `() => new Promise((resolve, reject) => {
                    const early = async (tx) => { const answer = await work(tx); setTimeout(resolve, 500, answer); return answer; };
                    attempt(read, { work: early, untilMs }).then(resolve, reject);
                })`,
};

const readyAllTheTime = { file: 'db/postgres/postgres.js', from: 'await health.check();', to: '' };
const lazy = ['synchronous_commit=off', 'wal_writer_delay=10s'];
const whileBehind = 'the same, while the standby was behind';

/** A service that does it wrongly. */
interface Mutant {
  readonly id: string;
  readonly what: string;
  readonly edits: readonly Edit[];
  /** The row that has to find it out. */
  run(given: Given): Promise<Outcome>;
}

/** Services that do it wrongly, each with the suite that has to find it out. */
export const mutants: readonly Mutant[] = [
  {
    id: 'R1',
    what: 'that marks before it publishes',
    edits: [markFirst],
    run: ({ entry, tell }) => killUnderLoad({ Kind: Nats, kills: 20, entry, tell, stopEarly: true }),
  },
  {
    id: 'R1',
    what: 'that writes events after the commit',
    edits: writeLater,
    run: ({ entry, tell }) => killUnderLoad({ Kind: Redis, kills: 30, entry, tell }),
  },
  {
    id: 'R1',
    what: 'that founds the organization in two transactions',
    edits: foundByHalves,
    run: ({ entry, tell }) => killFounding({ kills: 12, entry, tell }),
  },
  {
    id: 'R1',
    what: 'that notes a step of a migration after it',
    edits: [noteLater, noteLaterEnd],
    run: ({ entry, tell }) => killMigration({ kills: 8, entry, tell }),
  },
  {
    id: 'R2',
    what: 'that takes a failure for an arrival',
    edits: [swallow],
    run: isDown(Nats),
  },
  {
    id: 'R2',
    what: 'that marks before it publishes',
    edits: [markFirst],
    run: isDown(Redis),
  },
  {
    id: 'D5',
    what: 'that does not sync',
    edits: [noSync],
    run: ({ entry, tell }) => cutPower({ cuts: 12, entry, tell }),
  },
  {
    id: 'R4',
    what: 'that does not wait for a slow commit',
    edits: [answerFirst],
    run: rowOf(diskRows, 'the disk is full'),
  },
  {
    id: 'D6',
    what: 'that does not look for damage',
    edits: [lookAtNothing],
    run: rowOf(damageRows, 'noise over a page in the middle'),
  },
  {
    id: 'D7',
    what: 'that counts the time itself',
    edits: [countedTime],
    run: rowOf(clockRows, 'the clock goes forward a day'),
  },
  { id: 'R9', what: 'that lets everybody in', edits: [letAllIn], run: rowOf(loadRows, 'three times too much') },
  { id: 'R7', what: 'that forgets the last use', edits: [forgetUses], run: rowOf(loadRows, 'SIGTERM under load') },
  {
    id: 'R10',
    what: 'whose migration loses settings',
    edits: [loseInStep],
    run: (given) => openEverySchema(given, [4]),
  },
  {
    id: 'R3',
    what: 'that does not wait for a slow commit',
    edits: [answerEarly],
    run: (options) => troubled(whileBehind, options),
  },
  {
    id: 'R3',
    what: 'whose standby need not have what is answered',
    edits: [],
    run: (options) => troubled(whileBehind, { ...options, isSynchronous: false }),
  },
  {
    id: 'D4',
    what: 'that is ready while nothing can be written',
    edits: [readyAllTheTime],
    run: (options) => troubled("PostgreSQL's disk is full", { ...options, short: true }),
  },
  {
    id: 'D5',
    what: 'whose PostgreSQL does not sync what it answers',
    edits: [],
    run: (options) => troubled('power is cut from it', { ...options, short: true, settings: lazy }),
  },
];
