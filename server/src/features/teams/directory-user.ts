import { z } from 'zod';
import { components, idResponse } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';
import { milliseconds } from './team.ts';

/** A user who can be in teams, as returned. Rule: TEAM-14. */
export const directoryUser = z.object({
  id: idResponse,
  userId: idResponse,
  orgId: idResponse,
  name: z.string(),
  email: emailResponse,
  isActive: z.boolean().describe('Always true: deleted users are not listed'),
  createdAtTimestamp: milliseconds,
  updatedAtTimestamp: milliseconds,
});
components.add(directoryUser, { id: 'DirectoryUser' });

interface FoundUser {
  readonly id: string;
  readonly orgId: string;
  readonly name: string;
  readonly email: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** An active user as the team directory shows one; both ids are that of the user. */
export function toDirectoryUser({ createdAtMs, updatedAtMs, ...user }: FoundUser): z.output<typeof directoryUser> {
  return {
    ...user,
    userId: user.id,
    isActive: true,
    createdAtTimestamp: createdAtMs,
    updatedAtTimestamp: updatedAtMs,
  };
}
