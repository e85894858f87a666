import { insertRelay, upsertDeadLetter } from '../../src/outbox/relay/relay-store.ts';
import type { TestApp } from './test-app.ts';

/** A subscription that is not served: nothing of it changes. */
export const unserved = 'entity-events/webhook/0123456789abcdef01234567';

/** Inserts a subscription at a position. */
export async function addRelay(app: TestApp, name = unserved, position = 0): Promise<void> {
  await app.services.db.transaction((tx) => insertRelay(tx, name, position));
}

/** Inserts a dead letter and returns its id. */
export async function addDeadLetter(
  app: TestApp,
  sequence: number,
  { relay = unserved, requeuedAt = null }: { readonly relay?: string; readonly requeuedAt?: number | null } = {},
): Promise<string> {
  const { db, clock, newId } = app.services;
  const id = newId();
  const letter = { id, relay, sequence, attempts: 5, last_error: 'it was refused', created_at: clock.now() };
  await db.transaction((tx) => upsertDeadLetter(tx, { ...letter, requeued_at: requeuedAt }));
  return id;
}
