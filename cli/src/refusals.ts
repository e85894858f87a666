import type { OperatorRefusal } from '../../server/src/features/org/contract.ts';
import { CommandError } from './failures.ts';

const texts: Readonly<Record<OperatorRefusal, string>> = {
  noOrganization: 'This store has no organization: create one with POST /api/v1/org',
  notDeleted: 'The organization is not deleted: there is nothing to restore, and nothing that may be purged',
};

/** The end of a command that the organization's state does not allow. */
export function refused(reason: OperatorRefusal): CommandError {
  return new CommandError('refused', texts[reason]);
}
