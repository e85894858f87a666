import { newPassword } from '../../access/password-rules.ts';
import { requireStrong, wordsOf } from '../../access/password-strength.ts';
import { ApiError } from '../../base/errors.ts';
import { selectOrganizationExists } from '../../db/members/organization.ts';
import { endpoint } from '../../http/endpoint.ts';
import { welcomeMail } from '../../mail/templates.ts';
import { newOrganizationForm, organizationRecord, toOrganizationRecord } from './org.ts';
import { createOrganization } from './public.ts';

/** Rules: ORG-1 to ORG-15, PASSWORD-20. */
export const createOrg = endpoint({
  method: 'POST',
  path: '/org',
  operationId: 'createOrganization',
  tag: 'Organization',
  summary: 'Set the system up: its organization and first administrator. Works once',
  errors: [409],
  policy: { who: 'anyone', writesBy: 'emptySystem' },
  boundedBy: 'once',
  async precondition({ db }) {
    if (await selectOrganizationExists(db.read)) throw new ApiError('organizationExists');
  },
  body: newOrganizationForm(newPassword),
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
