import type { Tx } from '../../db/database.ts';
import type { Services } from '../../services.ts';
import { type IssuedLink, issueLinks } from '../links/public.ts';
import { selectAddress } from './address-store.ts';

/** A link about an unverified address, not yet mailed: to confirm it, or to have its change approved first. */
export interface Confirmation {
  readonly purpose: 'confirmation' | 'approval';
  readonly email: string;
  readonly lastVerified: string;
  readonly link: IssuedLink;
  readonly needsPassword: boolean;
}

/** Makes a link about the unverified address of a user; `null` where there is nothing to confirm. */
export async function issueAbout(
  tx: Tx,
  services: Services,
  input: Pick<Confirmation, 'purpose' | 'needsPassword'> & { readonly userId: string; readonly createdBy: string },
): Promise<Confirmation | null> {
  const { userId, createdBy, purpose, needsPassword } = input;
  const user = await selectAddress(tx, userId);
  if (!user || user.lastVerified === null) return null;
  const { orgId, email, lastVerified } = user;
  const issuing = { purpose, setsPassword: true, createdBy, delivery: 'sending' } as const;
  const [link] = await issueLinks(tx, services, { ...issuing, inputs: [{ orgId, userId, needsPassword }] });
  return link ? { purpose, email, lastVerified, link, needsPassword } : null;
}

/** Makes the link that confirms an address once the owner of the last verified one has approved it. Rule: ADDRESS-16. */
export function issueApproved(tx: Tx, services: Services, userId: string): Promise<Confirmation | null> {
  return issueAbout(tx, services, { userId, createdBy: userId, needsPassword: false, purpose: 'confirmation' });
}
