import type { Reader } from '../database.ts';
import { erasedUser } from './erased-user.ts';

/** Tables whose rows are a user's own, and nothing without the user. */
export const ownTables = [
  'password_credentials',
  'one_time_links',
  'one_time_codes',
  'wrong_codes',
  'mailed_codes',
  'known_networks',
  'sign_in_progress',
  'sign_in_tickets',
  'sign_in_ends',
  'external_identities',
  'idempotency_keys',
] as const;

/** What rows of a user must be gone after an erasure. */
const goneTables = [...ownTables, 'sessions', 'group_members', 'team_members'] as const;

const personal = ['full_name', 'first_name', 'middle_name', 'last_name', 'mobile', 'designation', 'address'] as const;

/** A user whose data counts as erased and is not all gone. */
export interface RemainingUser {
  readonly userId: string;
  /** What is left: columns of the user, and names of tables. */
  readonly traces: readonly string[];
}

/** The columns of the users that count as erased which are not what erasing leaves. */
async function tracesInUsers(read: Reader): Promise<readonly (readonly [string, string])[]> {
  const users = await read
    .selectFrom('users')
    .where('erased_at', 'is not', null)
    .select(['id', 'email', 'recovery_email', 'is_deleted', ...personal])
    .execute();
  return users.flatMap((user) => {
    const left = erasedUser(user.id, 0);
    const traces: string[] = personal.filter((column) => user[column] !== left[column]);
    // What earlier releases left differed in its capitals.
    if (user.email.toLowerCase() !== left.email.toLowerCase()) traces.push('email');
    if (user.recovery_email !== null) traces.push('recovery_email');
    if (user.is_deleted === 0) traces.push('is_deleted');
    return traces.map((trace) => [user.id, trace] as const);
  });
}

/**
 * Users whose data counts as erased in the store and who have some of it left: no erasure leaves that, so the mark was
 * written by something else. Rule: AUDIT-20.
 */
export async function selectRemainingUsers(read: Reader): Promise<readonly RemainingUser[]> {
  const found = [...(await tracesInUsers(read))];
  const erased = read.selectFrom('users').where('erased_at', 'is not', null).select('id');
  for (const table of goneTables) {
    const rows = await read.selectFrom(table).where('user_id', 'in', erased).select('user_id').distinct().execute();
    found.push(...rows.map(({ user_id: id }) => [id, table] as const));
  }
  const pictures = await read.selectFrom('pictures').where('owner_id', 'in', erased).select('owner_id').execute();
  found.push(...pictures.map(({ owner_id: id }) => [id, 'pictures'] as const));
  const tokens = await read
    .selectFrom('personal_access_tokens')
    .where('user_id', 'in', erased)
    .where('name', '<>', 'Erased')
    .select('user_id')
    .distinct()
    .execute();
  found.push(...tokens.map(({ user_id: id }) => [id, 'personal_access_tokens'] as const));
  const byUser = new Map<string, string[]>();
  for (const [id, trace] of found) byUser.set(id, [...(byUser.get(id) ?? []), trace]);
  return [...byUser].map(([userId, traces]) => ({ userId, traces }));
}
