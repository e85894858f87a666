import { z } from 'zod';
import { newPassword } from '../../access/password-rules.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { nextSlug } from '../../db/counters.ts';
import type { Tx } from '../../db/database.ts';
import { RefusedError } from '../../errors.ts';
import { appendEvents } from '../../events/outbox.ts';
import { endpoint } from '../../http/endpoint.ts';
import type { Services } from '../../services.ts';
import { domainOf, emailAddress } from '../../text/email-address.ts';
import { address, optionalText, plainText } from '../../text/plain-text.ts';
import { createDefaultGroups, joinDefaultGroup } from '../groups/contract.ts';
import { createPassword, createSignInSteps } from '../sessions/contract.ts';
import { addPerson } from '../users/contract.ts';
import { organizationRecord, type StoredOrganization, toOrganizationRecord } from './org.ts';
import { insertOrganization, selectOrganizationExists } from './org-store.ts';

const body = z
  .object({
    accountType: z
      .enum(['individual', 'business'])
      .describe('Whom the organization stands for; a business needs a registeredName')
      .meta({ examples: ['business'] }),
    contactEmail: emailAddress.describe(
      "The organization's address, and the one that its first administrator signs in with; what follows the @ becomes the organization's domain",
    ),
    registeredName: optionalText.describe('Required for a business').meta({ examples: ['Example Ltd'] }),
    shortName: optionalText.describe('Without it, registeredName is shown').meta({ examples: ['Example'] }),
    adminFullName: plainText()
      .describe('Name of the first administrator')
      .meta({ examples: ['Grace Hopper'] }),
    password: newPassword,
    sendEmail: z
      .boolean()
      .optional()
      .describe('Accepted; no mail is sent')
      .meta({ examples: [false] }),
    phoneNumber: optionalText.meta({ examples: ['+442079460000'] }),
    permanentAddress: address.nullish(),
  })
  .refine(({ accountType, registeredName }) => accountType === 'individual' || registeredName !== null, {
    path: ['registeredName'],
    error: 'is required for a business account',
  });

type Body = z.output<typeof body>;

function newOrganization({ id, slug, nowMs, given }: { id: string; slug: string; nowMs: number; given: Body }) {
  const organization: StoredOrganization = {
    id,
    slug,
    account_type: given.accountType,
    registered_name: given.registeredName,
    short_name: given.shortName,
    domain: domainOf(given.contactEmail),
    contact_email: given.contactEmail,
    phone_number: given.phoneNumber,
    permanent_address: given.permanentAddress ? JSON.stringify(given.permanentAddress) : null,
    onboarding_status: 'notConfigured',
    is_deleted: 0,
    deleted_by: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
  return organization;
}

/** Makes the first administrator, in the groups and with the password that belong to one. Rules: ORG-9, ORG-14. */
async function addAdministrator(
  tx: Tx,
  services: Services,
  admin: { orgId: string; given: Body; passwordHash: string },
) {
  const { orgId, given, passwordHash } = admin;
  const { contactEmail: email, adminFullName: fullName } = given;
  const user = await addPerson(tx, services, { orgId, email, fullName, syncAction: 'none' });
  await joinDefaultGroup(tx, { orgId, userId: user.id, type: 'admin' });
  await createPassword(tx, { userId: user.id, passwordHash, nowMs: services.clock.now() });
  return user;
}

/** Rules: ORG-1 to ORG-14. */
export const createOrg = endpoint({
  method: 'POST',
  path: '/org',
  tag: 'Organization',
  summary: 'Set the system up: its organization and first administrator. Works once',
  policy: { who: 'anyone' },
  async precondition({ db }) {
    if (await selectOrganizationExists(db.read)) throw new RefusedError('organizationExists');
  },
  body,
  response: { 200: organizationRecord },
  async handle(services, { body: given, origin }) {
    const { db, clock, newId, passwords } = services;
    const passwordHash = await passwords.hash(given.password);
    const organization = await db.transaction(async (tx) => {
      const orgId = newId();
      const slug = await nextSlug(tx, 'org');
      const organization = newOrganization({ id: orgId, slug, nowMs: clock.now(), given });
      if (!(await insertOrganization(tx, organization))) throw new RefusedError('organizationExists');
      await createDefaultGroups(tx, services, orgId);
      await createSignInSteps(tx, orgId, clock.now());
      const { accountType, registeredName } = given;
      const payload = { orgId, accountType, ...(registeredName === null ? {} : { registeredName }) };
      await appendEvents(tx, services, [{ eventType: 'orgCreated', payload }]);
      const admin = await addAdministrator(tx, services, { orgId, given, passwordHash });
      const actor = { userId: admin.id };
      await appendAudit(tx, services, { action: 'org.created', orgId, actor, subjectId: orgId, origin });
      return organization;
    });
    return toOrganizationRecord(organization);
  },
});
