import type { ForCaller } from '../../access/reauthorization.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import type { Tx } from '../../db/database.ts';
import type { Services } from '../../services.ts';
import {
  announceGivenBack,
  announceMove,
  giveBackAddresses,
  issueConfirmation,
  offerAddress,
  prepareMove,
  requireProof,
  sendConfirmation,
} from '../addresses/public.ts';
import { changeUser } from './public.ts';
import { recordFor, toUserRecord } from './user.ts';
import { applyChange, type UserChange } from './user-change.ts';
import { selectOwnerOfEmail, selectUserById } from './user-store.ts';

/** A change of a user, and who makes it. */
interface Edit extends ForCaller {
  readonly params: { readonly id: string };
  readonly body: UserChange & { readonly currentPassword?: string | undefined };
  readonly origin: Origin;
}

/** Changes a user; `userUpdated` tells the full current set. Rules: ADDRESS-2 to ADDRESS-7, ADDRESS-13, USER-27, USER-28, USER-31, USER-33, USER-43. */
export async function edit(services: Services, { caller, write, params: { id }, body, origin }: Edit) {
  const { currentPassword, hasLoggedIn, ...others } = body;
  // That a member sets it is no news: the product knows better who has signed in.
  const isTakenOver = hasLoggedIn !== undefined && caller.isAdmin;
  const change: UserChange = isTakenOver ? { ...others, hasLoggedIn } : others;
  const { orgId } = caller;
  const { proof, canMail } = await prepareMove(services, {
    caller,
    userId: id,
    email: change.email,
    currentPassword,
    origin,
  });
  const work = async (tx: Tx) => {
    const before = await selectUserById(tx, id);
    if (before?.org_id !== orgId) throw new ApiError('notFound');
    await requireProof(tx, proof);
    const verifies = caller.kind === 'session' && caller.userId !== id;
    const after = applyChange(before, change, { nowMs: services.clock.now(), verifies });
    const isMoving = after.email !== before.email;
    const move = { orgId, emails: [after.email], exceptId: id, by: caller, origin };
    const givenBack = isMoving && verifies ? await giveBackAddresses(tx, services, move) : [];
    const owner = isMoving && (await selectOwnerOfEmail(tx, { orgId, email: after.email, forId: id }));
    if (owner) throw new ApiError('emailTaken');
    await changeUser(tx, services, { before, after, by: caller, origin, details: { fields: Object.keys(change) } });
    const issuing = { userId: id, by: caller, isProved: proof !== null };
    const confirmation = isMoving && canMail ? await issueConfirmation(tx, services, issuing) : null;
    return { before, after, givenBack, confirmation };
  };
  const done = await write(work).catch(async (error: unknown) => {
    const { email } = change;
    const canOffer = email !== undefined && canMail && error instanceof ApiError && error.errorName === 'emailTaken';
    const isOffered = canOffer && (await offerAddress(services, { caller, write, userId: id, email }));
    throw isOffered ? new ApiError('emailHeldUnverified') : error;
  });
  const { before, after, givenBack, confirmation } = done;
  if (before.email !== after.email) {
    const lastVerified = before.recovery_email ?? before.email;
    const isVerified = after.recovery_email === null;
    await announceMove(services, { userId: id, lastVerified, email: after.email, isVerified });
  }
  if (confirmation) await sendConfirmation(services, confirmation);
  await announceGivenBack(services, givenBack);
  return recordFor(caller, toUserRecord(after));
}
