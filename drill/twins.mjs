import { Nats, Redis } from './brokers.mjs';
import { killFounding, killUnderLoad } from './kills.mjs';
import { killMigration } from './migrations.mjs';
import { outages } from './outages.mjs';
import { cutPower } from './power-cuts.mjs';

/** In the relay: moves on before anything is sent. */
const markFirst = {
  file: 'events/relay.js',
  from: 'const { delivered, failure } = await this.#outlet.sink.deliver(events);',
  to: `await this.#advance(relay, events.at(-1).envelope.sequence, events.length);
        const { delivered, failure } = await this.#outlet.sink.deliver(events);`,
};

/** In the relay: takes a failure for an arrival. */
const swallow = {
  file: 'events/relay.js',
  from: 'const { delivered, failure } = await this.#outlet.sink.deliver(events);',
  to: `await this.#outlet.sink.deliver(events);
        const [delivered, failure] = [events.length, null];`,
};

/** Events are written in a transaction of their own, after that of the change. */
const writeLater = [
  {
    file: 'events/outbox.js',
    from: "await tx.insertInto('outbox').values(rows).execute();",
    to: '(globalThis.latchkeyLate ??= []).push(...rows);',
  },
  {
    file: 'db/sqlite.js',
    from: 'mark.forget();\n            }\n        },\n        first',
    to: `const late = globalThis.latchkeyLate?.splice(0) ?? [];
                if (late.length > 0) await write.transaction().execute((tx) => tx.insertInto('outbox').values(late).execute());
                mark.forget();
            }
        },
        first`,
  },
];

/** What comes after the first transaction comes a moment later, so that kills find the time between. */
const later = 'await new Promise((resolve) => setTimeout(resolve, 150));';

/** An organization is founded, and then its administrator gets the password. */
const foundByHalves = [
  {
    file: 'features/org/contract.js',
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
  file: 'db/migrate.js',
  from: 'await up(tx);',
  to: `await up(tx);
        }).then(async () => {
            ${later}
            return db.transaction(async (tx) => {`,
};
const noteLaterEnd = {
  file: 'db/migrate.js',
  from: 'applied_at: clock.now() }).execute();\n        });',
  to: 'applied_at: clock.now() }).execute();\n        }); });',
};

const noSync = {
  file: 'db/sqlite.js',
  from: "writer.pragma('synchronous = FULL')",
  to: "writer.pragma('synchronous = OFF')",
};

const outage = (trouble) => outages.find((one) => one.trouble === trouble);

/** Services that do it wrongly, each with the drill that has to find it out. */
export const twins = [
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
    run: ({ entry, tell }) => outage('down').run({ Kind: Nats, entry, tell, outageSeconds: 3, changes: 60 }),
  },
  {
    id: 'R2',
    what: 'that marks before it publishes',
    edits: [markFirst],
    run: ({ entry, tell }) => outage('down').run({ Kind: Redis, entry, tell, outageSeconds: 3, changes: 60 }),
  },
  {
    id: 'D5',
    what: 'that does not sync',
    edits: [noSync],
    run: ({ entry, tell }) => cutPower({ cuts: 12, entry, tell }),
  },
];
