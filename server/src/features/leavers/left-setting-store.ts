import type { Reader } from '../../db/database.ts';

/** The settings that some users confirmed, or that they set or gave the secret of and no one confirmed since. */
export function selectSettingsOf(read: Reader, userIds: readonly string[]) {
  return read
    .selectFrom('settings')
    .where((eb) =>
      eb.or([
        eb('confirmed_by', 'in', userIds),
        eb('confirmed_by', 'is', null).and(eb.or([eb('updated_by', 'in', userIds), eb('secret_by', 'in', userIds)])),
      ]),
    )
    .orderBy('name')
    .select(['name', 'updated_at as updatedAt'])
    .execute();
}

/** The sign-in steps that some users set last. */
export function selectSignInStepsOf(read: Reader, userIds: readonly string[]) {
  return read.selectFrom('auth_configs').where('set_by', 'in', userIds).select('updated_at as updatedAt').execute();
}
