import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { MailError } from '../../mail/mail-error.ts';
import { testMail } from '../../mail/templates.ts';
import type { Services } from '../../services.ts';
import { emailResponse } from '../../text/email-address.ts';

/** Sends the mail and returns the server's response; throws `testMailFailed` with the server's message. */
async function send({ db, mail }: Services, to: string): Promise<string> {
  const organization = await selectActiveOrganization(db.read);
  const letter = testMail({ organization: organization?.name ?? '' });
  const serverMessage = await mail.send({ to, ...letter }).catch((error: unknown) => {
    if (!(error instanceof MailError)) throw error;
    const { kind, serverMessage, reason, hint } = error;
    const said = hint === null ? serverMessage : `${serverMessage} ${hint}`;
    const cause = `${kind} ${said}${reason === serverMessage ? '' : ` (${reason})`}`;
    throw new ApiError('testMailFailed', { params: { said }, cause });
  });
  if (serverMessage === null) throw new ApiError('mailNotConfigured');
  return serverMessage;
}

/** Rules: AUDIT-4, FIT-22, FIT-26, MAIL-11. */
export const testMailSettings = endpoint({
  method: 'POST',
  path: '/settings/smtp/test',
  tag: 'Settings',
  summary: 'Send a mail to yourself, and return the response of the mail server',
  errors: [400, 502],
  policy: { who: 'admin', scope: 'org:admin' },
  async precondition({ mail }) {
    if (!(await mail.settings())) throw new ApiError('mailNotConfigured');
  },
  response: {
    200: z.object({
      message: z.string(),
      to: emailResponse,
      response: z.string().describe('The response of the server'),
    }),
  },
  async handle(services, { caller, write, origin }) {
    const { userId, orgId } = caller;
    await services.limits.count('testMail', userId);
    const to = await write(async (tx) => (await selectUserById(tx, userId))?.email ?? '');
    const record = { action: 'settings.mail-tested', orgId, actor: caller, subjectId: null, origin } as const;
    const note = (outcome: 'success' | 'failure') => services.recordAttempt({ ...record, outcome });
    const response = await send(services, to).catch(async (error: unknown) => {
      await note('failure');
      throw error;
    });
    await note('success');
    return { message: 'Test mail sent successfully', to, response };
  },
});
