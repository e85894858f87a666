import type { Clock } from '../base/clock.ts';
import type { NewId } from '../base/ids.ts';
import { takeNumbers } from '../db/counters.ts';
import type { Tx } from '../db/database.ts';

/** Events of organizations and users, as consumers receive them. Rules: EVENT-3 to EVENT-7. */
export type DomainEvent =
  | {
      readonly eventType: 'orgCreated';
      readonly payload: { readonly orgId: string; readonly accountType: string; readonly registeredName?: string };
    }
  | {
      readonly eventType: 'userAdded';
      readonly payload: {
        readonly orgId: string;
        readonly userId: string;
        readonly email: string;
        readonly fullName?: string;
        /** `none` for the first administrator, `immediate` for all other users. */
        readonly syncAction: 'none' | 'immediate';
      };
    }
  | {
      readonly eventType: 'orgUpdated';
      readonly payload: { readonly orgId: string; readonly registeredName?: string };
    }
  | { readonly eventType: 'orgDeleted'; readonly payload: { readonly orgId: string } }
  | {
      readonly eventType: 'userUpdated';
      readonly payload: {
        readonly orgId: string;
        readonly userId: string;
        readonly email: string;
        /** Of an address that is not verified. */
        readonly emailVerified?: false;
        readonly fullName: string;
        readonly firstName?: string;
        readonly middleName?: string;
        readonly lastName?: string;
        readonly designation?: string;
      };
    }
  | {
      readonly eventType: 'userDeleted';
      readonly payload: { readonly orgId: string; readonly userId: string; readonly email: string };
    };

/**
 * Writes events in the transaction of the change that they tell of, so that neither exists without the other.
 * Sequence numbers follow commit order.
 */
export async function appendEvents(
  tx: Tx,
  { clock, newId }: { readonly clock: Clock; readonly newId: NewId },
  events: readonly DomainEvent[],
): Promise<void> {
  const first = await takeNumbers(tx, 'event', events.length);
  const rows = events.map(({ eventType, payload }, place) => ({
    sequence: first + place,
    id: newId(),
    org_id: payload.orgId,
    event_type: eventType,
    occurred_at: clock.now(),
    payload: JSON.stringify(payload),
  }));
  await tx.insertInto('outbox').values(rows).execute();
}
