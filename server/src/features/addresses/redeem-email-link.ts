import { z } from 'zod';
import { givenPassword } from '../../access/password-rules.ts';
import type { Proof } from '../../access/proof.ts';
import { refuseInput } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import type { Secret } from '../../base/secret.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import { requireConfirmation, useUpApproval, useUpConfirmation } from '../links/public.ts';
import { hasPassword, proveCurrentPassword } from '../passwords/public.ts';
import { selectAddress } from './address-store.ts';
import { takeAddress } from './claim-actions.ts';
import { issueApproved } from './confirmation-actions.ts';
import { announceGivenBack, announceMove, requireProof, sendConfirmation, verifyAddress } from './public.ts';

/**
 * The proof of the current password where the address was set without it; `null` where none is needed. A caller with a
 * stolen session or token must not get at the account by an address of its own. Rule: ADDRESS-4.
 */
async function proofFor(
  services: Services,
  { secret, given, origin }: { readonly secret: Secret; readonly given: string | undefined; readonly origin: Origin },
): Promise<Proof | null> {
  const { read } = services.db;
  const link = await requireConfirmation(read, services, secret);
  const user = await selectAddress(read, link.userId);
  if (!user || !link.needsPassword || !(await hasPassword(read, link.userId))) return null;
  if (given === undefined) {
    throw refuseInput({ field: 'body.currentPassword', message: 'is required: the address was set without it' });
  }
  const actor = { userId: user.id };
  return proveCurrentPassword(services, { user, actor, action: 'user.updated', given, origin });
}

/** Rules: ADDRESS-4, ADDRESS-5, ADDRESS-13, ADDRESS-16, LINK-2. */
export const redeemEmailLink = endpoint({
  method: 'POST',
  path: '/userAccount/email/confirm/token',
  tag: 'Sign-in',
  summary:
    'Verify an e-mail address with the token of the link that was mailed there, sent as bearer; or, with that of a link to the earlier address, approve the change',
  errors: [410],
  policy: { who: 'holder', writesBy: 'link' },
  boundedBy: 'redeems a link',
  async precondition(services, held) {
    if (held) await requireConfirmation(services.db.read, services, held);
  },
  body: z
    .strictObject({
      currentPassword: givenPassword
        .optional()
        .describe('Of the account; required where the address was set without it, and the account has one'),
    })
    .optional(),
  response: { 200: messageResponse },
  async handle(services, { caller, body, origin }) {
    const proof = await proofFor(services, { secret: caller, given: body?.currentPassword, origin });
    const { taken, approved } = await services.db.transaction(async (tx) => {
      // Of several at once with one link, the first has used it up.
      const link = await requireConfirmation(tx, services, caller);
      const { userId, email } = link;
      await requireProof(tx, proof);
      if (link.purpose === 'approval') {
        await useUpApproval(tx, link, services.clock.now());
        return { approved: await issueApproved(tx, services, userId) };
      }
      await useUpConfirmation(tx, link, services.clock.now());
      if (email !== null) return { taken: { userId, ...(await takeAddress(tx, services, { userId, email, origin })) } };
      await verifyAddress(tx, services, { userId, by: { userId }, origin, how: 'link' });
      return {};
    });
    if (taken) {
      await announceMove(services, { ...taken, isVerified: true });
      await announceGivenBack(services, taken.givenBack);
    }
    if (approved) {
      await sendConfirmation(services, approved);
      return {
        message: 'We send a mail with a link to confirm the address. If none arrives within ten minutes, ask again',
      };
    }
    return { message: 'E-mail address confirmed' };
  },
});
