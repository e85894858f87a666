import { sql } from 'kysely';

type UserIdColumn = `${string}.user_id`;

/**
 * Whether the person that a column names is in the `admin` group: what makes an administrator. Rule: AUTH-29.
 * @param userId a column of the query that this becomes part of, such as `t.user_id`
 */
export function isAdministrator(userId: UserIdColumn) {
  return sql<0 | 1>`exists (
    select 1 from group_members as m
    join user_groups as g on g.id = m.group_id
    where m.user_id = ${sql.ref(userId)} and g.type = 'admin'
  )`;
}
