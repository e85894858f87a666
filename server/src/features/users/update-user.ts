import { z } from 'zod';
import type { Principal } from '../../access/principal.ts';
import { selectActiveOrganization } from '../../db/organization.ts';
import { RefusedError } from '../../errors.ts';
import { endpoint, endpoints } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { emailChangedMail } from '../../mail/templates.ts';
import type { Origin } from '../../origin.ts';
import type { Services } from '../../services.ts';
import { changePerson } from './contract.ts';
import { type StoredUser, toUserRecord, userRecord } from './user.ts';
import { applyChange, fieldBodies, type UserChange, wholeBody } from './user-change.ts';
import { selectHolderOfEmail, selectUserById } from './user-store.ts';

const params = z.object({ id: id.describe('Of the user') });
const response = { 200: userRecord };

interface Edit {
  readonly caller: Principal;
  readonly params: { readonly id: string };
  readonly body: UserChange;
  readonly origin: Origin;
}

/** Tells whoever reads the mail of the addresses of before. Rule: MAIL-6. */
async function announceMove({ db, mail, limits }: Services, before: StoredUser, newEmail: string): Promise<void> {
  const organization = (await selectActiveOrganization(db.read))?.name;
  // Whoever moves to and fro would have us write to anybody.
  if (organization === undefined || !(await limits.tryCount('emailNotice', before.id))) return;
  const letter = emailChangedMail({ organization, newEmail });
  const earlier = new Set([before.email, before.recovery_email ?? before.email]);
  for (const to of earlier) if (to !== newEmail) mail.sendLater('notice of a changed e-mail', { to, ...letter });
}

/** Changes a user, of whom everybody is told the full current set. Rules: USER-27, USER-28, USER-33, USER-43. */
async function edit(services: Services, { caller, params: { id }, body: change, origin }: Edit) {
  const { orgId } = caller;
  const { before, after } = await services.db.transaction(async (tx) => {
    await services.confirm(tx, caller, { adminOrSelf: id });
    const before = await selectUserById(tx, id);
    if (before?.org_id !== orgId) throw new RefusedError('notFound');
    const after = applyChange(before, change, { nowMs: services.clock.now(), byToken: caller.kind === 'token' });
    const isMoving = after.email !== before.email;
    const holder = isMoving && (await selectHolderOfEmail(tx, { orgId, email: after.email, forId: id }));
    if (holder) throw new RefusedError('emailTaken');
    const details = { fields: Object.keys(change) };
    await changePerson(tx, services, { before, after, by: caller, origin, details });
    return { before, after };
  });
  if (before.email !== after.email) await announceMove(services, before, after.email);
  return toUserRecord(after);
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
      body: fieldBodies[field],
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
      'or not: get_user tells it. With a token, a changed one gets no mail for new passwords until it is confirmed in a session.',
  },
  params,
  body: wholeBody,
  response,
  handle: edit,
});
