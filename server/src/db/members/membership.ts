import { sql } from 'kysely';

type UserIdColumn = `${string}.user_id`;
type MakerColumn = `${string}.${'created' | 'secret' | 'address' | 'updated' | 'confirmed'}_by`;

/**
 * Whether the person that a column names is in the `admin` group: what makes an administrator. Rule: AUTH-29.
 * @param userId a column of the query that this becomes part of, such as `t.user_id`
 */
export function isAdministrator(userId: UserIdColumn | MakerColumn) {
  return sql<0 | 1>`exists (
    select 1 from group_members as m
    join user_groups as g on g.id = m.group_id
    where m.user_id = ${sql.ref(userId)} and g.type = 'admin'
  )`;
}

/**
 * Whether all users whom some columns name are administrators: 1 or 0; `null` where none of the columns names a user.
 * Rule: LEAVER-5.
 */
export function areAdministrators(...columns: readonly [MakerColumn, MakerColumn, ...MakerColumn[]]) {
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const each = columns.map((column) => sql`(${sql.ref(column)} is null or ${isAdministrator(column)})`);
  return sql<
    0 | 1 | null
  >`case when coalesce(${names}) is null then null when ${sql.join(each, sql` and `)} then 1 else 0 end`;
}
