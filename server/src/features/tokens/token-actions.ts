import type { Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import type { Origin } from '../../base/origin.ts';
import { hashCredential, Secret } from '../../base/secret.ts';
import type { Tx } from '../../db/database.ts';
import type { User } from '../../db/members/users.ts';
import type { AllServices, Services } from '../../services.ts';
import { foldCase } from '../../text/plain-text.ts';
import { toExpiry, tokenClaims } from './token.ts';
import { insertToken } from './token-store.ts';

/** What issuing a token takes of the services. */
export type IssuingServices = Pick<AllServices, 'clock' | 'newId' | 'config' | 'keys'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/** A token to be issued. */
interface NewToken {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** Milliseconds since 1970, whole seconds; `null`: never. */
  readonly expiresAt: number | null;
  /** The token that asked for it; `null`: a session or the operator did. */
  readonly parentId: string | null;
}

/** Who asked for a token, and how it is written. */
interface Issuing {
  readonly owner: Pick<User, 'id' | 'orgId' | 'fullName'>;
  /** `null`: the operator. */
  readonly actor: Principal | null;
  readonly origin: Origin;
  /** Whether the scopes were left out of the request. */
  readonly scopesDefaulted: boolean;
  /** Runs work in the transaction that stores the token. */
  readonly write: (work: (tx: Tx) => Promise<void>) => Promise<void>;
}

/**
 * Signs a token and stores its hash, with the audit record of it in the same transaction. Rules: PAT-1, PAT-27, AUDIT-9.
 * @returns the raw token with its display prefix, which is not stored
 */
export async function issueToken(services: IssuingServices, token: NewToken, issuing: Issuing): Promise<Secret> {
  const { config, keys } = services;
  const { owner, actor, origin, scopesDefaulted, write } = issuing;
  const { id: userId, orgId, fullName } = owner;
  const { id, name, scopes, expiresAt } = token;
  const jwt = await keys.sign(tokenClaims({ ...token, userId, orgId, fullName }, config.baseUrl));
  const made = { name, scopes, expiresAt: toExpiry(expiresAt) };
  await write(async (tx) => {
    await insertToken(tx, {
      id,
      hash: hashCredential(jwt.expose()),
      org_id: orgId,
      user_id: userId,
      name,
      name_key: foldCase(name),
      scopes: scopes.join(' '),
      created_at: token.createdAt,
      expires_at: expiresAt,
      parent_id: token.parentId,
    });
    const record = { action: 'token.created', orgId, actor, subjectId: id, ownerId: userId, origin } as const;
    const details = { ...made, scopesDefaulted };
    await appendAudit(tx, services, { ...record, details, changes: changesBetween(null, made) });
  });
  return new Secret(config.displayPrefixes[0] + jwt.expose());
}
