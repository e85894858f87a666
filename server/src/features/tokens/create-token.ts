import { z } from 'zod';
import { unauthorized } from '../../access/bearer.ts';
import { day, toTimestamp } from '../../base/clock.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { idResponse, notRepeated, timestamp } from '../../http/schemas.ts';
import { notifyOfToken } from '../../mail/owner-notices.ts';
import { plainText } from '../../text/plain-text.ts';
import { capExpiry, expiry, scopesFor, toExpiry } from './token.ts';
import { issueToken } from './token-actions.ts';

const nameMax = 100;
const scopesMax = 500;

const body = z.strictObject({
  name: plainText({ max: nameMax })
    .describe('The name of the token')
    .meta({ examples: ['Nightly report'] }),
  scopes: z
    .array(z.string().min(1).max(100))
    .min(1)
    .max(scopesMax)
    .optional()
    .describe(
      'The scopes of the token: names of GET /personal-access-tokens/scopes. Left out, it gets every scope that the instance grants if a session creates it, and every scope of the calling token if a token creates it. A token can grant at most its own scopes',
    )
    .meta({ examples: [['user:read']] }),
  expiryDays: z
    .literal([30, 90, 365, 'never'], 'must be 30, 90, 365 or "never"')
    .default(30)
    .describe('The number of days that the token is valid. One created by a token expires no later than that token')
    .meta({ examples: [30] }),
});

/** Response to a creation, without the token itself. */
function toCreatedToken<T extends { readonly createdAt: number; readonly expiresAt: number | null }>(token: T) {
  const times = { createdAt: toTimestamp(token.createdAt), expiresAt: toExpiry(token.expiresAt) };
  return { message: 'Personal access token created successfully', token: { ...token, ...times } };
}

/** Rules: PAT-1 to PAT-8, PAT-12, PAT-25, PAT-27, SCOPE-22 to SCOPE-24. */
export const createToken = endpoint({
  method: 'POST',
  path: '/personal-access-tokens',
  operationId: 'createPersonalAccessToken',
  tag: 'Personal access tokens',
  summary: 'Create a personal access token; the token itself is shown only here',
  policy: { who: 'member', scope: 'token:write' },
  idempotency: { secrets: ['token.accessToken'] },
  body,
  response: {
    201: z.object({
      message: z.string(),
      token: z.object({
        id: idResponse,
        name: z.string(),
        scopes: z.array(z.string()),
        createdAt: timestamp,
        expiresAt: expiry,
        accessToken: z.string().optional().describe(notRepeated),
      }),
    }),
  },
  async handle(services, { caller, write, remember, body: { name, scopes: asked, expiryDays }, origin }) {
    const { config, clock, newId, limits } = services;
    const creator = caller.kind === 'token' ? caller : null;
    const scopes = scopesFor(asked, config.scopes.names, creator?.scopes ?? config.scopes.names);
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
    const owner = await selectUserById(services.db.read, caller.userId);
    if (!owner) throw unauthorized.invalid();
    const response = toCreatedToken(token);
    const issuing = { owner, actor: caller, origin, scopesDefaulted: asked === undefined };
    const accessToken = await issueToken(
      services,
      { ...token, parentId: creator?.tokenId ?? null },
      {
        ...issuing,
        write: (work) =>
          write(async (tx) => {
            await work(tx);
            await remember(tx, response);
          }),
      },
    );
    notifyOfToken(services, token, { userId: caller.userId, origin });
    return { ...response, token: { ...response.token, accessToken: accessToken.expose() } };
  },
});
