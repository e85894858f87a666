import { z } from 'zod';
import { newPassword } from '../../access/password-rules.ts';
import { requireStrong, wordsOf } from '../../access/password-strength.ts';
import { ApiError } from '../../base/errors.ts';
import { selectOrganizationExists } from '../../db/members/organization.ts';
import { endpoint } from '../../http/endpoint.ts';
import { welcomeMail } from '../../mail/templates.ts';
import { emailAddress } from '../../text/email-address.ts';
import { address, optionalText, plainText } from '../../text/plain-text.ts';
import { organizationRecord, toOrganizationRecord } from './org.ts';
import { createOrganization } from './public.ts';

const body = z
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
    password: newPassword,
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

/** Rules: ORG-1 to ORG-15, PASSWORD-20. */
export const createOrg = endpoint({
  method: 'POST',
  path: '/org',
  tag: 'Organization',
  summary: 'Set the system up: its organization and first administrator. Works once',
  policy: { who: 'anyone', writesBy: 'emptySystem' },
  boundedBy: 'once',
  async precondition({ db }) {
    if (await selectOrganizationExists(db.read)) throw new ApiError('organizationExists');
  },
  body,
  response: { 200: organizationRecord },
  async handle(services, { body: given, origin }) {
    const { adminFullName, password, sendEmail, ...profile } = given;
    const { contactEmail, registeredName, shortName } = profile;
    await requireStrong('body.password', password, wordsOf([adminFullName, contactEmail, registeredName, shortName]));
    const passwordHash = await services.passwords.hash(password);
    const newOrganization = { profile, adminFullName, passwordHash, origin };
    const organization = await services.db.transaction((tx) => createOrganization(tx, services, newOrganization));
    const record = toOrganizationRecord(organization);
    if (sendEmail === true) {
      const signInUrl = `${services.config.frontendUrl}/sign-in`;
      const names = { organization: record.shortName ?? record.domain, fullName: adminFullName };
      services.mail.sendLater('welcome', { to: record.contactEmail, ...welcomeMail({ ...names, signInUrl }) });
    }
    return record;
  },
});
