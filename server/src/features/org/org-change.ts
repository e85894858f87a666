import { z } from 'zod';
import { refuseInput } from '../../base/errors.ts';
import { idResponse, timestamp } from '../../http/schemas.ts';
import { domainOf, emailAddress, emailResponse } from '../../text/email-address.ts';
import { addressResponse, clearableAddress, clearableText, storedAddress } from '../../text/plain-text.ts';
import type { StoredOrganization } from './org.ts';

/** Fields of the organization that can be changed; absent ones stay. Rules: ORG-20, ORG-24. */
export const orgChangeBody = z.object({
  contactEmail: emailAddress
    .optional()
    .describe("The part after the @ becomes the organization's domain; sign-ins don't change"),
  registeredName: clearableText
    .optional()
    .describe('A business cannot be without one')
    .meta({ examples: ['Example Ltd'] }),
  shortName: clearableText
    .optional()
    .describe('Without it, registeredName is shown')
    .meta({ examples: ['Example'] }),
  permanentAddress: clearableAddress.optional().describe('Replaced as a whole'),
});

/** A change to the organization: each field is absent or has its new value. */
export type OrgChange = z.output<typeof orgChangeBody>;

/** Changed fields in the response: those that were given. Rule: ORG-21. */
export const orgChangeResponse = z.object({
  message: z.string(),
  data: z.object({
    _id: idResponse,
    contactEmail: emailResponse.optional(),
    registeredName: z.string().nullable().optional(),
    shortName: z.string().nullable().optional(),
    permanentAddress: addressResponse.nullable().optional(),
    updatedAt: timestamp,
  }),
});

/** The organization after a change. Throws `invalidInput` for a business that would have no registered name. */
export function applyOrgChange(before: StoredOrganization, change: OrgChange, nowMs: number): StoredOrganization {
  // Absent fields stay; `null` is a new value.
  const { contactEmail = before.contact_email, permanentAddress } = change;
  const { registeredName = before.registered_name, shortName = before.short_name } = change;
  if (registeredName === null && before.account_type === 'business') {
    throw refuseInput({ field: 'body.registeredName', message: 'is required for a business account' });
  }
  return {
    ...before,
    contact_email: contactEmail,
    domain: domainOf(contactEmail),
    registered_name: registeredName,
    short_name: shortName,
    permanent_address: permanentAddress === undefined ? before.permanent_address : storedAddress(permanentAddress),
    updated_at: nowMs,
  };
}
