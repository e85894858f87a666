import type { Reader } from '../../db/database.ts';

/** Credentials of a user other than single sign-on. */
export interface OtherCredentials {
  readonly hasPassword: boolean;
  /** Number of open sessions. */
  readonly sessions: number;
  /** The names of the newest tokens that are active. */
  readonly tokenNames: readonly string[];
  /** Number of active tokens. */
  readonly tokens: number;
}

const namesMax = 10;

function openSessions(read: Reader, userId: string, nowMs: number) {
  return read
    .selectFrom('sessions as s')
    .where('s.user_id', '=', userId)
    .where('s.ended_at', 'is', null)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('session_tokens as t')
          .whereRef('t.session_id', '=', 's.id')
          .where('t.expires_at', '>', nowMs)
          .select('t.hash'),
      ),
    );
}

function activeTokens(read: Reader, userId: string, nowMs: number) {
  return read
    .selectFrom('personal_access_tokens')
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', nowMs)]));
}

/**
 * Returns the credentials of a user other than single sign-on: password, open sessions and active tokens. Rule:
 * ADDRESS-10.
 */
export async function selectOtherCredentials(read: Reader, userId: string, nowMs: number): Promise<OtherCredentials> {
  const password = await read
    .selectFrom('password_credentials')
    .where('user_id', '=', userId)
    .select('user_id')
    .executeTakeFirst();
  const sessions = await openSessions(read, userId, nowMs)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  const tokens = await activeTokens(read, userId, nowMs)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  const names = await activeTokens(read, userId, nowMs).orderBy('id', 'desc').limit(namesMax).select('name').execute();
  return {
    hasPassword: password !== undefined,
    sessions: sessions.total,
    tokenNames: names.map(({ name }) => name),
    tokens: tokens.total,
  };
}
