import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Origin } from '../../base/origin.ts';
import type { Organization } from '../../db/members/organization.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import { passwordResetMail } from '../../mail/templates.ts';
import type { AllServices } from '../../services.ts';
import { emailAddress } from '../../text/email-address.ts';
import { countedNetwork } from '../known-networks/public.ts';
import { issueLinks } from '../links/public.ts';
import { mailingOrganization, runAfterResponse } from './public.ts';
import { selectRecoverable } from './sign-in-store.ts';

interface Input {
  readonly organization: Organization;
  readonly email: string;
  readonly origin: Origin;
}

/** Creates a link for the user with the address, if there is one; returns it with its owner and recipient. */
async function makeLink(services: AllServices, { organization: { id: orgId }, email, origin }: Input) {
  return services.db.transaction(async (tx) => {
    const user = await selectRecoverable(tx, orgId, email);
    if (!user) return null;
    const inputs = [{ orgId, userId: user.id }];
    const issuing = { purpose: 'reset', setsPassword: true, createdBy: null, delivery: 'sending' } as const;
    const [link] = await issueLinks(tx, services, { ...issuing, inputs });
    const record = { action: 'password.reset-requested', orgId, actor: null, subjectId: user.id, origin } as const;
    await appendAudit(tx, services, record);
    return link ? { user, link } : null;
  });
}

/** Sends a link to the user with an address, if there is one. Rules: AUTH-49, PASSWORD-8. */
async function recover(services: AllServices, email: string, origin: Origin): Promise<void> {
  const organization = await mailingOrganization(services, 'password');
  if (!organization) return;
  const known = await selectRecoverable(services.db.read, organization.id, email);
  if (!known) return;
  const network = await countedNetwork(services.db.read, services, { userId: known.id, address: origin.network });
  if (!(await services.limits.tryCount('recoveryMail', network, known.id))) return;
  const made = await makeLink(services, { organization, email, origin });
  if (!made) return;
  const { user, link } = made;
  const letter = passwordResetMail({
    organization: organization.name,
    fullName: user.fullName,
    link: link.address.expose(),
    expiresIn: '20 minutes',
  });
  services.mail.sendLater('recovery of a password', { to: user.mailTo, ...letter });
}

/** Rules: PASSWORD-7, PASSWORD-8. Everything that depends on the owner of the address runs after the response. */
export const requestPasswordReset = endpoint({
  method: 'POST',
  path: '/userAccount/password/forgot',
  tag: 'Sign-in',
  summary: 'Mail a link that sets a password; all addresses get the same response',
  policy: { who: 'anyone', writesBy: 'mailbox' },
  boundedBy: 'recovery',
  body: z.object({ email: emailAddress.describe('The address that one signs in with') }),
  response: { 200: messageResponse },
  async handle(services, { body: { email }, origin }) {
    await runAfterResponse(services, origin, {
      what: 'recovery of a password',
      work: (from) => recover(services, email, from),
    });
    return {
      message:
        'If this e-mail address has an account, we send it a mail with a link to set a new password. If none arrives within ten minutes, ask again',
    };
  },
});
