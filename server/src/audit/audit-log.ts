import type { Principal } from '../access/principal.ts';
import type { Clock } from '../clock.ts';
import { takeNumbers } from '../db/counters.ts';
import type { Tx } from '../db/database.ts';
import type { NewId } from '../ids.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Origin } from '../origin.ts';

/** Everything that is recorded. */
type AuditAction =
  | 'org.created'
  | 'org.restored'
  | 'org.purged'
  | 'org.updated'
  | 'org.deleted'
  | 'org.onboarding-set'
  | 'user.created'
  | 'user.updated'
  | 'user.deleted'
  | 'user.restored'
  | 'user.invited'
  | 'invitation.shown'
  | 'invitation.revoked'
  | 'password.reset-requested'
  | 'password.reset'
  | 'password.changed'
  | 'code.requested'
  | 'sign-in.steps-set'
  | 'user.email-confirmed'
  | 'service.created'
  | 'service.deleted'
  | 'service.token-issued'
  | 'service.token-revoked'
  | 'operator.recovery-link'
  | 'config.reloaded'
  | 'settings.oidc-set'
  | 'settings.oidc-removed'
  | 'settings.oidc-tested'
  | 'settings.mail-set'
  | 'settings.mail-removed'
  | 'settings.mail-tested'
  | 'group.created'
  | 'group.renamed'
  | 'group.deleted'
  | 'group.members-added'
  | 'group.members-removed'
  | 'team.created'
  | 'team.updated'
  | 'team.deleted'
  | 'picture.stored'
  | 'picture.removed'
  | 'session.started'
  | 'session.refreshed'
  | 'session.refresh-reused'
  | 'session.ended'
  | 'token.created'
  | 'token.revoked'
  | 'tokens.pruned'
  | 'store.seeded';

interface AuditRecord {
  readonly action: AuditAction;
  /** `null`: the system as a whole. */
  readonly orgId: string | null;
  /** Who did it; a bare user id where the act itself is what proves the person. `null`: the service. */
  readonly actor: Principal | { readonly userId: string } | null;
  /** The id of what it was done to; `null`: more than one thing. */
  readonly subjectId: string | null;
  readonly origin: Origin;
  /** What else is worth keeping. Never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
}

interface AuditParts {
  readonly clock: Clock;
  readonly newId: NewId;
  readonly metrics: Pick<Metrics, 'countActivity'>;
}

/** As many rows as one statement takes on either engine. */
const rowsAtOnce = 500;

/** Writes records in the transaction of the acts that they tell of, and counts the activity. Rules: AUDIT-1, AUDIT-2. */
export async function appendAudit(
  tx: Tx,
  { clock, newId, metrics }: AuditParts,
  ...records: readonly AuditRecord[]
): Promise<void> {
  if (records.length === 0) return;
  const first = await takeNumbers(tx, 'audit', records.length);
  const rows = records.map(({ actor, origin, ...record }, place) => ({
    sequence: first + place,
    id: newId(),
    occurred_at: clock.now(),
    org_id: record.orgId,
    action: record.action,
    actor_user_id: actor?.userId ?? null,
    actor_token_id: actor && 'tokenId' in actor ? actor.tokenId : null,
    subject_id: record.subjectId,
    network: origin.network,
    request_id: origin.requestId,
    details: JSON.stringify(record.details ?? {}),
  }));
  for (let start = 0; start < rows.length; start += rowsAtOnce) {
    await tx
      .insertInto('audit_log')
      .values(rows.slice(start, start + rowsAtOnce))
      .execute();
  }
  for (const { action } of records) metrics.countActivity(action);
}
