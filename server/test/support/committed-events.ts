import type { StoreConnection } from './store-connection.ts';

const rowsPerStatement = 500;

/**
 * Adds events to those of an organization in one commit, as a process of its own does that writes to its store. The
 * counter comes first: it is what writers wait for, whereas a transaction that begins by reading is refused.
 */
export function commitEvents(store: StoreConnection, count: number, payload = '{}'): void {
  store.transaction(() => {
    const { value } = store
      .prepare("UPDATE counters SET value = value + ? WHERE name = 'event' RETURNING value")
      .get(count) as { value: number };
    const { org_id } = store.prepare('SELECT org_id FROM outbox ORDER BY sequence LIMIT 1').get() as { org_id: string };
    const rows = Array.from({ length: count }, (_, place) => {
      const sequence = value - count + 1 + place;
      return [sequence, sequence.toString(16).padStart(24, '0'), org_id, 'userAdded', Date.now(), payload];
    });
    for (let done = 0; done < count; done += rowsPerStatement) {
      const some = rows.slice(done, done + rowsPerStatement);
      const places = some.map(() => '(?, ?, ?, ?, ?, ?)').join(', ');
      store.prepare(`INSERT INTO outbox VALUES ${places}`).run(...some.flat());
    }
  })();
}
