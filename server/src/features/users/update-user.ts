import { z } from 'zod';
import type { ForCaller } from '../../access/confirmation.ts';
import { givenPassword } from '../../access/password-rules.ts';
import { RefusedError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { endpoint, endpoints } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import {
  announceGivenBack,
  announceMove,
  giveBackAddresses,
  issueConfirmation,
  prepareMove,
  requireProof,
  sendConfirmation,
} from '../addresses/public.ts';
import { changePerson } from './public.ts';
import { recordFor, toUserRecord, userRecord } from './user.ts';
import { applyChange, fieldBodies, type UserChange, wholeBody } from './user-change.ts';
import { selectHolderOfEmail, selectUserById } from './user-store.ts';

const params = z.object({ id: id.describe('Of the user') });
const response = { 200: userRecord };

const currentPassword = givenPassword
  .optional()
  .describe(
    'One’s own, where one changes one’s own address: with it, the link in the mail to the new address is enough to verify it; otherwise the password is asked for there. Nothing else needs it',
  );
const emailBody = fieldBodies.email.extend({ currentPassword });

interface Edit extends ForCaller {
  readonly params: { readonly id: string };
  readonly body: UserChange & { readonly currentPassword?: string | undefined };
  readonly origin: Origin;
}

/** Changes a user; `userUpdated` tells the full current set. Rules: ADDRESS-2 to ADDRESS-7, USER-27, USER-28, USER-33, USER-43. */
async function edit(services: Services, { caller, write, params: { id }, body, origin }: Edit) {
  const { currentPassword, ...change } = body;
  const { orgId } = caller;
  const { proof, canMail } = await prepareMove(services, {
    caller,
    userId: id,
    email: change.email,
    currentPassword,
    origin,
  });
  const { before, after, givenBack, confirmation } = await write(async (tx) => {
    const before = await selectUserById(tx, id);
    if (before?.org_id !== orgId) throw new RefusedError('notFound');
    await requireProof(tx, proof);
    const verifies = caller.kind === 'session' && caller.userId !== id;
    const after = applyChange(before, change, { nowMs: services.clock.now(), verifies });
    const isMoving = after.email !== before.email;
    const move = { orgId, emails: [after.email], exceptId: id, by: caller, origin };
    const givenBack = isMoving && verifies ? await giveBackAddresses(tx, services, move) : [];
    const holder = isMoving && (await selectHolderOfEmail(tx, { orgId, email: after.email, forId: id }));
    if (holder) throw new RefusedError('emailTaken');
    await changePerson(tx, services, { before, after, by: caller, origin, details: { fields: Object.keys(change) } });
    const issuing = { userId: id, by: caller, isProved: proof !== null };
    const confirmation = isMoving && canMail ? await issueConfirmation(tx, services, issuing) : null;
    return { before, after, givenBack, confirmation };
  });
  if (before.email !== after.email) {
    const lastVerified = before.recovery_email ?? before.email;
    const isVerified = after.recovery_email === null;
    await announceMove(services, { userId: id, lastVerified, email: after.email, isVerified });
  }
  if (confirmation) await sendConfirmation(services, confirmation);
  await announceGivenBack(services, givenBack);
  return recordFor(caller, toUserRecord(after));
}

/** Rules: USER-22 to USER-24, USER-27 to USER-29, USER-32, USER-33. */
export const updateUserField = endpoints(
  [
    { field: 'fullname', what: 'full name' },
    { field: 'firstName', what: 'first name' },
    { field: 'lastName', what: 'last name' },
    { field: 'designation', what: 'job title' },
    { field: 'email', what: 'e-mail address' },
  ],
  ({ field, what }) =>
    endpoint({
      method: 'PATCH',
      path: `/users/:id/${field}`,
      tag: 'Users',
      summary: `Change a user's ${what}`,
      policy: { who: 'adminOrSelf', scope: 'user:write' },
      params,
      body: field === 'email' ? emailBody : fieldBodies[field],
      response,
      handle: edit,
    }),
);

/** Rules: USER-25 to USER-33. */
export const updateUser = endpoint({
  method: 'PUT',
  path: '/users/:id',
  tag: 'Users',
  summary: 'Change what is given of a user',
  policy: { who: 'adminOrSelf', scope: 'user:write' },
  tool: {
    name: 'update_user',
    title: 'Change a user',
    description:
      'Changes what is given of a user and leaves the rest; null takes a field away. The e-mail address has to be given, changed ' +
      'or not: get_user tells it. One’s own, changed, is unverified until the link in the mail to it is opened; never ask anybody for ' +
      'currentPassword.',
  },
  params,
  body: wholeBody.extend({ currentPassword }),
  response,
  handle: edit,
});
