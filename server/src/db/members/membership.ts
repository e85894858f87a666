import { sql } from 'kysely';

type UserIdColumn = `${string}.user_id`;
type MakerColumn = `${string}.${'created' | 'secret' | 'address' | 'updated' | 'confirmed'}_by`;

/**
 * Expression that is true when the user in a column is in the `admin` group, which makes an administrator. Rule:
 * AUTH-29.
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
 * Expression that tells whether all users in some columns are administrators: 1 or 0; `null` where all columns are
 * null. Rule: LEAVER-5.
 */
export function areAdministrators(...columns: readonly [MakerColumn, MakerColumn, ...MakerColumn[]]) {
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const each = columns.map((column) => sql`(${sql.ref(column)} is null or ${isAdministrator(column)})`);
  return sql<
    0 | 1 | null
  >`case when coalesce(${names}) is null then null when ${sql.join(each, sql` and `)} then 1 else 0 end`;
}
