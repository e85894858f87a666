import { ApiError } from '../../server/src/base/errors.ts';
import type { Reader } from '../../server/src/db/database.ts';
import { type Organization, selectActiveOrganization } from '../../server/src/db/members/organization.ts';
import { type OperatorError, readOrganizationState } from '../../server/src/features/org/public.ts';
import type { ErasureError } from '../../server/src/operator/erasure/public.ts';
import type { RecoveryError } from '../../server/src/operator/recovery/public.ts';
import { CommandError } from './failures.ts';

type Reason = OperatorError | RecoveryError | ErasureError | 'organizationDeleted' | 'noSuchToken' | 'noSuchService';

const texts: Readonly<Record<Reason, string>> = {
  noOrganization: 'This store has no organization: latchkey org create makes one',
  organizationDeleted: 'The organization is deleted: latchkey org restore brings it back',
  notDeleted: 'The organization is not deleted: there is nothing to restore, and nothing that may be purged',
  noSuchAdministrator: 'There is no active administrator with that address',
  passwordsOff: 'Passwords are not used for sign-in here: --reset-sign-in resets it to passwords alone',
  noSuchToken: 'There is no such token, or it has ended already',
  noSuchUser: 'There is no such user',
  userNotDeleted: 'The user is not deleted: delete the user first',
  userErased: 'The data of this user was erased already',
  noSuchService: 'There is no such service, or it has ended already',
};

/** Returns the error of a command that the present state does not allow. */
export function operatorError(reason: Reason): CommandError {
  return new CommandError('refused', texts[reason]);
}

/** Returns the result of the work; where it found nothing, the command ends with this reason. */
export async function orThrow<T>(work: Promise<T>, reason: Reason): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof ApiError && error.errorName === 'notFound' ? operatorError(reason) : error;
  }
}

/** The organization of the store; ends the command where there is none, or none any more. */
export async function requireOrganization(read: Reader): Promise<Organization> {
  const organization = await selectActiveOrganization(read);
  if (organization) return organization;
  throw operatorError((await readOrganizationState(read)) ? 'organizationDeleted' : 'noOrganization');
}
