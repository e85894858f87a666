import { z } from 'zod';
import { toTimestamp } from '../../base/clock.ts';
import { components, idResponse, timestamp } from '../../http/schemas.ts';
import { domainOf, emailAddress, emailResponse } from '../../text/email-address.ts';
import { address, addressResponse, optionalText, plainText, storedAddress, toAddress } from '../../text/plain-text.ts';

/** Progress of setting up the organization. Rule: ORG-28. */
export const onboardingStatus = z.enum(['notConfigured', 'configured', 'skipped']);

/** The organization record as it goes out. Rule: ORG-18. */
export const organizationRecord = z.object({
  _id: idResponse,
  slug: z.string(),
  registeredName: z.string().optional(),
  shortName: z.string().optional(),
  domain: z.string(),
  contactEmail: emailResponse,
  accountType: z.enum(['individual', 'business']),
  phoneNumber: z.string().optional(),
  permanentAddress: addressResponse.optional(),
  onBoardingStatus: onboardingStatus,
  isDeleted: z.boolean(),
  deletedByUser: idResponse.optional(),
  createdAt: timestamp,
  updatedAt: timestamp,
});
components.add(organizationRecord, { id: 'Organization' });

/** The organization as the store has it. */
export interface StoredOrganization {
  readonly id: string;
  readonly slug: string;
  readonly account_type: 'individual' | 'business';
  readonly registered_name: string | null;
  readonly short_name: string | null;
  readonly domain: string;
  readonly contact_email: string;
  readonly phone_number: string | null;
  /** JSON. */
  readonly permanent_address: string | null;
  readonly onboarding_status: 'notConfigured' | 'configured' | 'skipped';
  readonly is_deleted: 0 | 1;
  readonly deleted_by: string | null;
  readonly created_at: number;
  readonly updated_at: number;
}

/** Returns the fields of an organization that audit records compare. Rule: AUDIT-9. */
export function auditedOrganization(org: StoredOrganization) {
  return {
    accountType: org.account_type,
    registeredName: org.registered_name,
    shortName: org.short_name,
    domain: org.domain,
    contactEmail: org.contact_email,
    phoneNumber: org.phone_number,
    permanentAddress: toAddress(org.permanent_address) ?? null,
    onBoardingStatus: org.onboarding_status,
    isDeleted: org.is_deleted === 1,
  };
}

/** The organization after being deleted. Rule: ORG-25. */
export function deletedOrganization(org: StoredOrganization, deletedBy: string, nowMs: number): StoredOrganization {
  return { ...org, is_deleted: 1, deleted_by: deletedBy, updated_at: nowMs };
}

/** A deleted organization after being restored. Rule: CLI-3. */
export function restoredOrganization(org: StoredOrganization, nowMs: number): StoredOrganization {
  return { ...org, is_deleted: 0, deleted_by: null, updated_at: nowMs };
}

/** The organization record; fields that are not set are left out. Rules: ORG-18, ORG-19. */
export function toOrganizationRecord(org: StoredOrganization) {
  return {
    _id: org.id,
    slug: org.slug,
    registeredName: org.registered_name ?? undefined,
    shortName: org.short_name ?? org.registered_name ?? undefined,
    domain: org.domain,
    contactEmail: org.contact_email,
    accountType: org.account_type,
    phoneNumber: org.phone_number ?? undefined,
    permanentAddress: toAddress(org.permanent_address),
    onBoardingStatus: org.onboarding_status,
    isDeleted: org.is_deleted === 1,
    deletedByUser: org.deleted_by ?? undefined,
    createdAt: toTimestamp(org.created_at),
    updatedAt: toTimestamp(org.updated_at),
  };
}

/** Profile of a new organization. */
export interface OrganizationProfile {
  readonly accountType: 'individual' | 'business';
  readonly contactEmail: string;
  readonly registeredName: string | null;
  readonly shortName: string | null;
  readonly phoneNumber: string | null;
  readonly permanentAddress?: z.output<typeof addressResponse> | null | undefined;
}

/** The row of a new organization. Rule: ORG-3. */
export function newOrganizationRow(
  { id, slug, profile }: { readonly id: string; readonly slug: string; readonly profile: OrganizationProfile },
  nowMs: number,
): StoredOrganization {
  return {
    id,
    slug,
    account_type: profile.accountType,
    registered_name: profile.registeredName,
    short_name: profile.shortName,
    domain: domainOf(profile.contactEmail),
    contact_email: profile.contactEmail,
    phone_number: profile.phoneNumber,
    permanent_address: storedAddress(profile.permanentAddress),
    onboarding_status: 'notConfigured',
    is_deleted: 0,
    deleted_by: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
}

/**
 * Form of the input for a new organization with its first administrator.
 * @param password form of a new password
 */
export function newOrganizationForm(password: z.ZodType<string>) {
  return z
    .object({
      accountType: z
        .enum(['individual', 'business'])
        .describe('The kind of the organization; a business needs a registeredName')
        .meta({ examples: ['business'] }),
      contactEmail: emailAddress.describe(
        "The organization's address, with which its first administrator signs in; the part after the @ becomes the organization's domain",
      ),
      registeredName: optionalText.describe('Required for a business').meta({ examples: ['Example Ltd'] }),
      shortName: optionalText.describe('Without it, registeredName is shown').meta({ examples: ['Example'] }),
      adminFullName: plainText()
        .describe('Name of the first administrator')
        .meta({ examples: ['Grace Hopper'] }),
      password,
      sendEmail: z
        .boolean()
        .optional()
        .describe('Whether the administrator gets a welcome mail; none is sent while mail is not configured')
        .meta({ examples: [false] }),
      phoneNumber: optionalText.meta({ examples: ['+442079460000'] }),
      permanentAddress: address.nullish(),
    })
    .refine(({ accountType, registeredName }) => accountType === 'individual' || registeredName !== null, {
      path: ['registeredName'],
      error: 'is required for a business account',
    });
}
