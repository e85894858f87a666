import type { Principal } from '../../access/principal.ts';
import type { ForCaller } from '../../access/reauthorization.ts';
import { ApiError, refuseScope } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import type { Services } from '../../services.ts';
import { announceGivenBack } from '../addresses/public.ts';
import { adminGroupId, requireGroups } from '../groups/public.ts';
import type { GivenRole } from './invitation.ts';
import { addInvitees, makeInvitations, sendInvitations } from './public.ts';

/** Who is to be invited, and into which groups. */
interface Invitation extends ForCaller {
  /** Normalized, each once. */
  readonly emails: readonly string[];
  readonly groupIds?: readonly string[] | undefined;
  readonly role?: GivenRole | undefined;
  readonly origin: Origin;
}

/** Makes accounts and invitations, all or none. */
function prepare(services: Services, { caller, write, emails, groupIds = [], role, origin }: Invitation) {
  const { orgId } = caller;
  return write(async (tx) => {
    const named = role === 'admin' ? [...new Set([...groupIds, await adminGroupId(tx, orgId)])] : groupIds;
    await requireGroups(tx, { orgId, groupIds: named, caller });
    const { invitees, givenBack } = await addInvitees(tx, services, { caller, emails, groupIds: named, origin });
    if (invitees.length === 0) throw new ApiError('everybodyActive');
    return { givenBack, invitations: await makeInvitations(tx, services, { invitees, by: caller }) };
  });
}

function mayGroup(caller: Principal): boolean {
  return caller.kind === 'session' || caller.scopes.has('usergroup:write');
}

/**
 * Invites users by mail. Throws `insufficientScope` for a token that names groups without the scope for it,
 * `everybodyActive` where no one is left to invite. Rules: INVITE-5 to INVITE-17, LEAVER-1, FIT-77.
 */
export async function inviteByMail(services: Services, invitation: Invitation): Promise<{ readonly message: string }> {
  const { caller, groupIds } = invitation;
  const startedMs = performance.now();
  // Rule: INVITE-16.
  if (groupIds !== undefined && !mayGroup(caller)) throw refuseScope(['usergroup:write']);
  await services.limits.count('invite', caller.userId);
  const { invitations, givenBack } = await prepare(services, invitation);
  await announceGivenBack(services, givenBack);
  await sendInvitations(services, invitations, startedMs);
  return { message: 'Invite sent successfully' };
}
