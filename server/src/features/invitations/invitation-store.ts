import { sql } from 'kysely';
import type { Reader } from '../../db/database.ts';
import { type UserSearch, userMatches } from '../../db/members/user-search.ts';
import { type InvitationStatus, lostBeforeMs, type StoredInvitation } from './invitation.ts';

/** Mail that did not go out: the server said no, or the service was stopped before it said anything. */
function unreached(nowMs: number) {
  return sql<boolean>`(l.delivery = 'failed' or (l.delivery = 'sending' and l.created_at <= ${lostBeforeMs(nowMs)}))`;
}

/** True for a user who has signed in, or has a password to do so, by whatever link it was set. */
const accepted = sql<boolean>`(u.has_logged_in = 1 or u.signed_in_at is not null
  or exists (select 1 from password_credentials p where p.user_id = u.id))`;

function status(nowMs: number) {
  return sql<InvitationStatus>`case
    when ${accepted} then 'accepted'
    when ${unreached(nowMs)} then 'failed'
    when l.ended_at is not null or l.expires_at <= ${nowMs} then 'expired'
    else 'pending' end`;
}

/** Selects the last invitation of each user who is not deleted. */
function current(read: Reader, orgId: string) {
  return read
    .selectFrom('one_time_links as l')
    .innerJoin('users as u', 'u.id', 'l.user_id')
    .where('l.org_id', '=', orgId)
    .where('l.purpose', '=', 'invitation')
    .where('l.is_current', '=', 1)
    .where('u.is_deleted', '=', 0);
}

/** Filter of the list of invitations. */
interface InvitationFilter {
  readonly orgId: string;
  readonly search: UserSearch | undefined;
  readonly status: InvitationStatus | undefined;
  readonly nowMs: number;
}

function isEverything({ search, status: wanted }: InvitationFilter): boolean {
  return !search && wanted === undefined;
}

function filtered(read: Reader, { orgId, search, status: wanted, nowMs }: InvitationFilter) {
  let query = current(read, orgId);
  if (search) query = query.where((eb) => eb.or(userMatches('u', search)));
  if (wanted) query = query.where(status(nowMs), '=', wanted);
  return query;
}

/** Selects all last invitations without joining users: deleted users have none. */
function currentLinks(read: Reader, orgId: string) {
  return read
    .selectFrom('one_time_links')
    .where('org_id', '=', orgId)
    .where('purpose', '=', 'invitation')
    .where('is_current', '=', 1);
}

/** Returns the number of invitations that match a filter. */
export async function countInvitations(read: Reader, filter: InvitationFilter): Promise<number> {
  const count = isEverything(filter)
    ? currentLinks(read, filter.orgId).select((eb) => eb.fn.countAll<number>().as('total'))
    : filtered(read, filter).select((eb) => eb.fn.countAll<number>().as('total'));
  return (await count.executeTakeFirstOrThrow()).total;
}

function selected(read: Reader, filter: InvitationFilter) {
  return filtered(read, filter)
    .select(['u.id as userId', 'u.email', 'u.full_name as fullName', 'u.signed_in_at as signedInAt'])
    .select(['l.is_returning as isReturning', 'l.delivery', 'l.created_by as createdBy'])
    .select(['l.created_at as createdAt', 'l.expires_at as expiresAt'])
    .select(status(filter.nowMs).as('status'));
}

/** One page of invitations, newest first; where nothing is filtered it is cut on the index. */
export function selectInvitationPage(
  read: Reader,
  filter: InvitationFilter,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<StoredInvitation[]> {
  if (!isEverything(filter))
    return selected(read, filter).orderBy('l.id', 'desc').limit(limit).offset(offset).execute();
  const page = currentLinks(read, filter.orgId).orderBy('id', 'desc').limit(limit).offset(offset).select('id');
  return selected(read, filter).where('l.id', 'in', page).orderBy('l.id', 'desc').execute();
}

/** Returns the last invitation of one user; `undefined` without one. */
export function selectInvitation(
  read: Reader,
  { orgId, userId, nowMs }: { readonly orgId: string; readonly userId: string; readonly nowMs: number },
): Promise<StoredInvitation | undefined> {
  const filter = { orgId, nowMs, search: undefined, status: undefined };
  return selected(read, filter).where('l.user_id', '=', userId).executeTakeFirst();
}

/**
 * Returns those of some users whose last invitation mail did not go out, and who have not signed in another way: by id,
 * with whether they had been members before.
 */
export async function selectUnreached(
  read: Reader,
  { orgId, userIds, nowMs }: { readonly orgId: string; readonly userIds: readonly string[]; readonly nowMs: number },
): Promise<ReadonlyMap<string, boolean>> {
  if (userIds.length === 0) return new Map();
  const rows = await current(read, orgId)
    .where('l.user_id', 'in', userIds)
    .where(status(nowMs), '=', 'failed')
    .select(['u.id', 'l.is_returning'])
    .execute();
  return new Map(rows.map((row) => [row.id, row.is_returning === 1]));
}
