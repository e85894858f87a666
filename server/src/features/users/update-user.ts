import { z } from 'zod';
import type { Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { changesBetween } from '../../audit/changes.ts';
import { selectActiveOrganization } from '../../db/organization.ts';
import { RefusedError } from '../../errors.ts';
import { appendEvents } from '../../events/outbox.ts';
import { endpoint, endpoints } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { emailChangedMail } from '../../mail/templates.ts';
import type { Origin } from '../../origin.ts';
import type { Services } from '../../services.ts';
import { forgetCodes } from '../codes/contract.ts';
import { endLinks } from '../links/contract.ts';
import { auditedUser, type StoredUser, toUserRecord, userRecord } from './user.ts';
import { applyChange, fieldBodies, type UserChange, updatedPayload, wholeBody } from './user-change.ts';
import { selectHolderOfEmail, selectUserById, updateUser as writeUser } from './user-store.ts';

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
  if (organization === undefined || !limits.tryCount('emailNotice', before.id)) return;
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
    await writeUser(tx, after);
    if (isMoving) {
      await endLinks(tx, { userId: id, nowMs: services.clock.now(), reason: 'email-changed' });
      await forgetCodes(tx, id);
    }
    await appendEvents(tx, services, [{ eventType: 'userUpdated', payload: updatedPayload(after) }]);
    const changes = changesBetween(auditedUser(before), auditedUser(after));
    const record = { action: 'user.updated', orgId, actor: caller, subjectId: id, origin } as const;
    await appendAudit(tx, services, { ...record, details: { fields: Object.keys(change) }, changes });
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
