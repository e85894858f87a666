import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import type { Tx } from '../../db/database.ts';
import { appendEvents } from '../../outbox/outbox.ts';
import { updatedPayload } from '../../outbox/updated-user.ts';
import type { Services } from '../../services.ts';
import { forgetCodes } from '../codes/public.ts';
import { selectIsTaken, selectOwner, updateMoved } from './address-store.ts';
import { type GivenBack, giveBackAddresses } from './public.ts';

/** What a claimed address changed. */
interface Claimed {
  readonly lastVerified: string;
  readonly email: string;
  readonly givenBack: readonly GivenBack[];
}

/**
 * Makes an address that its owner proved by a link the verified one of the user who asked for it, and gives the user who held
 * it unverified the last verified one back. Throws `emailTaken` where another user has proved it meanwhile. Announce the
 * result after the commit. Rules: ADDRESS-6, ADDRESS-13.
 */
export async function takeAddress(
  tx: Tx,
  services: Services,
  { userId, email, origin }: { readonly userId: string; readonly email: string; readonly origin: Origin },
): Promise<Claimed> {
  const before = await selectOwner(tx, userId);
  const { org_id: orgId } = before;
  const by = { userId };
  const givenBack = await giveBackAddresses(tx, services, { orgId, emails: [email], exceptId: userId, by, origin });
  if (await selectIsTaken(tx, { orgId, email, forId: userId })) throw new ApiError('emailTaken');
  await updateMoved(tx, { userId, email, nowMs: services.clock.now() });
  await forgetCodes(tx, userId);
  await appendEvents(tx, services, [{ eventType: 'userUpdated', payload: updatedPayload({ ...before, email }) }]);
  const changes = { email: { before: before.email, after: email } };
  const record = { action: 'user.email-confirmed', orgId, actor: by, subjectId: userId, origin } as const;
  await appendAudit(tx, services, { ...record, details: { email, how: 'link' }, changes });
  return { lastVerified: before.recovery_email ?? before.email, email, givenBack };
}
