import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Origin } from '../../base/origin.ts';
import type { Secret } from '../../base/secret.ts';
import type { Organization } from '../../db/members/organization.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import { oneTimeCodeMail } from '../../mail/templates.ts';
import type { AllServices } from '../../services.ts';
import { emailAddress } from '../../text/email-address.ts';
import { areCodesOff, issueCode } from '../codes/public.ts';
import { countedNetwork } from '../known-networks/public.ts';
import { readSignInSecret } from '../sign-in/public.ts';
import { mailingOrganization, runAfterResponse } from './public.ts';
import { selectRecoverable } from './sign-in-store.ts';

interface Input {
  readonly organization: Organization;
  readonly email: string;
  /** The random part of the sign-in that the code is asked for within; `null`: of none. */
  readonly signIn: Secret | null;
  readonly origin: Origin;
}

async function makeCode(services: AllServices, { organization: { id: orgId }, email, signIn, origin }: Input) {
  return services.db.transaction(async (tx) => {
    const user = await selectRecoverable(tx, orgId, email);
    if (!user) return null;
    const code = await issueCode(tx, services, { userId: user.id, address: origin.network, signIn });
    await appendAudit(tx, services, { action: 'code.requested', orgId, actor: null, subjectId: user.id, origin });
    return { user, code };
  });
}

/** Sends a code to the user who has an address, and to no one else. Rules: AUTH-42, AUTH-49, AUTH-51, AUTH-71. */
async function sendCode(services: AllServices, input: Omit<Input, 'organization'>): Promise<void> {
  const { email, origin } = input;
  const organization = await mailingOrganization(services, 'otp');
  if (!organization) return;
  const known = await selectRecoverable(services.db.read, organization.id, email);
  if (!known) return;
  const asked = { userId: known.id, address: origin.network };
  if (await areCodesOff(services.db.read, services, asked)) return;
  const network = await countedNetwork(services.db.read, services, asked);
  if (!(await services.limits.tryCount('codeMail', network, known.id))) return;
  const made = await makeCode(services, { ...input, organization });
  if (!made) return;
  const { fullName, mailTo } = made.user;
  const names = { organization: organization.name, fullName };
  const letter = oneTimeCodeMail({ ...names, code: made.code.expose(), expiresIn: '10 minutes' });
  services.mail.sendLater('one-time code', { to: mailTo, ...letter });
}

/** Rules: AUTH-41, AUTH-42, AUTH-73. All that depends on who has the address is done when the answer is on its way. */
export const requestOneTimeCode = endpoint({
  method: 'POST',
  path: '/userAccount/login/otp/generate',
  tag: 'Sign-in',
  summary: 'Mail a one-time code to sign in with; all addresses get the same response',
  errors: [401],
  policy: { who: 'anyone', writesBy: 'mailbox' },
  boundedBy: 'recovery',
  headers: z.object({
    'x-session-token': z
      .string()
      .optional()
      .describe('The header of this name in the answer of initAuth: the code is then valid for that sign-in alone'),
  }),
  body: z.object({ email: emailAddress.describe('The address that one signs in with') }),
  response: { 200: messageResponse },
  async handle(services, { headers, body: { email }, origin: asked }) {
    const signIn = await readSignInSecret(services, headers['x-session-token'], email);
    const work = (origin: Origin) => sendCode(services, { email, signIn, origin });
    await runAfterResponse(services, asked, { what: 'one-time code', work });
    return {
      message:
        'If this e-mail address has an account, we send it a mail with a code. If none arrives within ten minutes, ask again',
    };
  },
});
