import { z } from 'zod';
import { unauthorized } from '../../access/bearer.ts';
import type { TokenPrincipal } from '../../access/principal.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { day, toTimestamp } from '../../clock.ts';
import { RefusedError, refuseScope } from '../../errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { idAnswer, timestamp } from '../../http/schemas.ts';
import { hashCredential } from '../../secret.ts';
import { plainText } from '../../text/plain-text.ts';
import { isSessionLive } from '../sessions/contract.ts';
import { selectActiveOwner } from '../users/contract.ts';
import { capExpiry, expiry, toExpiry, tokenClaims } from './token.ts';
import { insertToken, selectIsLive } from './token-store.ts';

const nameMax = 100;
const scopesMax = 500;

const body = z.object({
  name: plainText({ max: nameMax }),
  scopes: z.array(z.string().min(1).max(100)).min(1).max(scopesMax).optional(),
  expiryDays: z
    .union([z.literal(30), z.literal(90), z.literal(365), z.literal('never')], 'must be 30, 90, 365 or "never"')
    .default(30),
});

/** The scopes of a new token: what was asked for, within what the instance and the asking token may give. */
function scopesFor(
  asked: readonly string[] | undefined,
  grantable: ReadonlySet<string>,
  creator: TokenPrincipal | null,
) {
  const limit = creator ? creator.scopes : grantable;
  if (!asked) return [...limit];
  const wanted = [...new Set(asked)];
  const unknown = wanted.filter((name) => !grantable.has(name));
  if (unknown.length > 0) throw new RefusedError('scopeNotGrantable', { params: { scopes: unknown.join(' ') } });
  const beyond = wanted.filter((name) => !limit.has(name));
  if (beyond.length > 0) throw refuseScope(beyond);
  return wanted;
}

/** Rules: PAT-1 to PAT-8, PAT-12, PAT-25, PAT-27, SCOPE-22 to SCOPE-24. */
export const createToken = endpoint({
  method: 'POST',
  path: '/personal-access-tokens',
  tag: 'Personal access tokens',
  summary: 'Create a personal access token; the token itself is shown only here',
  policy: { who: 'member', scope: 'token:write' },
  body,
  response: {
    201: z.object({
      message: z.string(),
      token: z.object({
        id: idAnswer,
        name: z.string(),
        scopes: z.array(z.string()),
        createdAt: timestamp,
        expiresAt: expiry,
        accessToken: z.string(),
      }),
    }),
  },
  async handle(services, { caller, body: { name, scopes: asked, expiryDays }, origin }) {
    const { config, clock, newId, limits } = services;
    const creator = caller.kind === 'token' ? caller : null;
    const scopes = scopesFor(asked, config.scopes.names, creator);
    await limits.count('mint', caller.userId);
    const nowMs = clock.now();
    const wantedMs = expiryDays === 'never' ? null : nowMs + expiryDays * day;
    const token = {
      id: newId(),
      name,
      scopes,
      createdAt: nowMs,
      expiresAt: capExpiry(wantedMs, creator?.expiresAtMs ?? null),
    };
    const { fullName } = await selectActiveOwner(services.db.read, caller.userId);
    const owner = { userId: caller.userId, orgId: caller.orgId, fullName };
    const jwt = await services.keys.sign(tokenClaims({ ...token, ...owner }, config.baseUrl));
    await services.db.transaction(async (tx) => {
      // The caller was proved before this transaction: it may have been revoked or deleted since.
      const isLive = creator ? await selectIsLive(tx, creator.tokenId, nowMs) : await isSessionLive(tx, caller);
      await selectActiveOwner(tx, caller.userId);
      if (!isLive) throw unauthorized.invalid();
      await insertToken(tx, {
        id: token.id,
        hash: hashCredential(jwt),
        org_id: caller.orgId,
        user_id: caller.userId,
        name,
        scopes: scopes.join(' '),
        created_at: nowMs,
        expires_at: token.expiresAt,
        parent_id: creator?.tokenId ?? null,
      });
      await appendAudit(tx, services, {
        action: 'token.created',
        orgId: caller.orgId,
        actor: caller,
        subjectId: token.id,
        origin,
        details: { name, scopes, scopesDefaulted: asked === undefined, expiresAt: toExpiry(token.expiresAt) },
      });
    });
    return {
      message: 'Personal access token created successfully',
      token: {
        ...token,
        createdAt: toTimestamp(token.createdAt),
        expiresAt: toExpiry(token.expiresAt),
        accessToken: config.displayPrefixes[0] + jwt,
      },
    };
  },
});
