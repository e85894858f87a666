import { z } from 'zod';
import { givenPassword } from '../../access/password-rules.ts';
import { requireAdministrator, requireAdministratorOrSelf } from '../../access/policy.ts';
import type { SessionPrincipal } from '../../access/principal.ts';
import type { ForCaller } from '../../access/reauthorization.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import { proveCurrentPassword } from '../passwords/public.ts';
import { selectAddress } from './address-store.ts';
import { issueConfirmation, requireProof, sendConfirmation, verifyAddress } from './public.ts';

interface Input extends ForCaller<SessionPrincipal> {
  readonly currentPassword: string | undefined;
  readonly origin: Origin;
}

/** Verifies the address of another user, by the word of an administrator. */
async function confirmOther(services: Services, userId: string, { caller, write, origin }: Input): Promise<void> {
  await write(async (tx, present) => {
    requireAdministrator(present);
    const user = await selectUserById(tx, userId);
    if (user?.orgId !== caller.orgId) throw new ApiError('notFound');
    await verifyAddress(tx, services, { userId, by: caller, origin, how: 'administrator' });
  });
}

/** Mails the caller a new link if their own address is unverified; returns whether it is. */
async function sendOwnLink(
  services: Services,
  { caller, write, currentPassword: given, origin }: Input,
): Promise<boolean> {
  const { userId } = caller;
  const user = await selectAddress(services.db.read, userId);
  if (!user || user.lastVerified === null) return false;
  if (!(await services.mail.settings())) throw new ApiError('mailNotConfigured');
  await services.limits.count('confirmationMail', userId);
  const proving = { user, actor: caller, action: 'user.updated', origin } as const;
  const proof = given === undefined ? null : await proveCurrentPassword(services, { ...proving, given });
  const made = await write(async (tx) => {
    await requireProof(tx, proof);
    return issueConfirmation(tx, services, { userId, by: caller, isProved: proof !== null });
  });
  if (made) await sendConfirmation(services, made);
  return made !== null;
}

/** Rules: ADDRESS-8, AUTH-49, AUTH-50. */
export const confirmEmail = endpoint({
  method: 'POST',
  path: '/userAccount/email/confirm',
  tag: 'Sign-in',
  summary:
    'Have a new link mailed that verifies one’s own e-mail address; an administrator verifies that of another user',
  errors: [404],
  policy: { who: 'member', sessionOnly: true },
  body: z
    .strictObject({
      userId: id
        .optional()
        .describe('Whose address to verify; administrators only. Without it, one’s own')
        .meta({ examples: ['0123456789abcdef01234567'] }),
      currentPassword: givenPassword
        .optional()
        .describe('One’s own: with it, the link alone verifies the address; otherwise the password is asked for there'),
    })
    .optional(),
  response: { 200: messageResponse },
  async handle(services, { caller, write, reauthorize, body, origin }) {
    const userId = body?.userId ?? caller.userId;
    requireAdministratorOrSelf(caller, userId);
    const input = { caller, write, currentPassword: body?.currentPassword, origin };
    if (userId !== caller.userId) {
      await confirmOther(services, userId, input);
      return { message: 'E-mail address confirmed' };
    }
    // Since admission a body has arrived.
    await reauthorize();
    const isSent = await sendOwnLink(services, input);
    return {
      message: isSent
        ? 'We send a mail with a link to confirm the address. If none arrives within ten minutes, ask again'
        : 'E-mail address confirmed',
    };
  },
});
