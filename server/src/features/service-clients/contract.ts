import { timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { Principal } from '../../access/principal.ts';
import type { HeldService } from '../../access/scoped-tokens.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { changesBetween } from '../../audit/changes.ts';
import { toTimestamp } from '../../clock.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { RefusedError } from '../../errors.ts';
import { idPattern } from '../../ids.ts';
import type { Origin } from '../../origin.ts';
import { type CredentialHash, hashCredential } from '../../secret.ts';
import type { Services } from '../../services.ts';
import { clientWish, endedServiceTokenKeptMs, mintRawClientSecret, toClientRecord } from './service-client.ts';
import {
  deleteOldServiceTokens,
  insertClient,
  selectClient,
  selectClients,
  selectServiceToken,
  updateClientDeleted,
} from './service-client-store.ts';

type ClientServices = Pick<Services, 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/** Looks a service's token up for verification. Rules: SERVICE-10, SERVICE-12. */
export async function findServiceToken(
  { db }: Pick<Services, 'db'>,
  hash: CredentialHash,
): Promise<HeldService | null> {
  const row = await db.first(selectServiceToken, { hash });
  if (!row) return null;
  return {
    clientId: row.clientId,
    scopes: new Set(row.scopes.split(' ')),
    isRevoked: row.revokedAt !== null,
    expiresAtMs: Math.min(row.expiresAt, row.makerExpiresAt ?? Number.POSITIVE_INFINITY),
  };
}

/** Reads what a service client is to be; `null` for what it cannot be. */
export function readClientWish(given: { readonly name: unknown; readonly scopes: unknown }) {
  return clientWish.safeParse(given).data ?? null;
}

/** Registers a service client, and answers it with its secret, which nobody can ask for later. Rules: SERVICE-7, SERVICE-18. */
export async function registerClient(
  tx: Tx,
  services: ClientServices,
  {
    name,
    scopes,
    orgId,
    actor,
    origin,
  }: z.output<typeof clientWish> & {
    readonly orgId: string | null;
    /** `null`: the operator. */
    readonly actor: Principal | null;
    readonly origin: Origin;
  },
) {
  const [id, nowMs, secret] = [services.newId(), services.clock.now(), mintRawClientSecret()];
  await insertClient(tx, {
    id,
    org_id: orgId,
    name,
    secret_hash: hashCredential(secret.expose()),
    scopes: scopes.join(' '),
    created_by: actor?.userId ?? null,
    created_by_token: actor?.kind === 'token' ? actor.tokenId : null,
    created_at: nowMs,
  });
  const record = { action: 'service.created', orgId, actor, subjectId: id, origin } as const;
  const details = { name, scopes };
  await appendAudit(tx, services, { ...record, details, changes: changesBetween(null, details) });
  return { clientId: id, clientSecret: secret.expose(), name, scopes: [...scopes], createdAt: toTimestamp(nowMs) };
}

/** Ends a service client with its tokens; throws `notFound` where there is none. Rule: SERVICE-10. */
export async function endClient(
  tx: Tx,
  services: ClientServices,
  {
    clientId,
    orgId,
    actor,
    origin,
  }: {
    readonly clientId: string;
    readonly orgId: string | null;
    readonly actor: Principal | null;
    readonly origin: Origin;
  },
): Promise<void> {
  const nowMs = services.clock.now();
  // One that ended with the token that made it is not there any more either.
  const client = await selectClient(tx, clientId, nowMs);
  if (!client) throw new RefusedError('notFound');
  await updateClientDeleted(tx, clientId, nowMs);
  const changes = changesBetween({ name: client.name, scopes: client.scopes.split(' ') }, null);
  await appendAudit(tx, services, { action: 'service.deleted', orgId, actor, subjectId: clientId, origin, changes });
}

/** All service clients that have not ended, in order of creation, without their secrets. Rule: SERVICE-9. */
export async function listClients(read: Reader, nowMs: number) {
  return (await selectClients(read, nowMs)).map(toClientRecord);
}

/** What OAuth endpoints may be sent, besides what each takes: who the client is (RFC 6749, section 2.3.1). */
export const clientCredentials = {
  client_id: z
    .string()
    .max(200)
    .optional()
    .describe('Unless the client is named by HTTP Basic')
    .meta({ examples: ['0123456789abcdef01234567'] }),
  client_secret: z
    .string()
    .max(200)
    .optional()
    .meta({ examples: ['lks_secret-of-the-client'] }),
};

/** A token that a client asks about or ends (RFC 7662, section 2.1; RFC 7009, section 2.1). */
export const tokenBody = z.object({
  ...clientCredentials,
  token: z
    .string()
    .min(1)
    .max(10_000)
    .meta({ examples: ['eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl'] }),
  token_type_hint: z
    .string()
    .max(100)
    .optional()
    .meta({ examples: ['access_token'] }),
});

/** The header of a client that proves itself by HTTP Basic. */
export const clientHeaders = z.object({ authorization: z.string().max(2_000).optional() });

const basicForm = /^basic +([A-Za-z0-9+/=]+)$/i;

function refuseClient(): RefusedError {
  return new RefusedError('clientInvalid', { headers: { 'www-authenticate': 'Basic realm="latchkey"' } });
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw refuseClient();
  }
}

/** Who a client says it is. Throws for one that says so twice, or not at all. */
function readCredentials(
  authorization: string | undefined,
  body: { readonly client_id?: string | undefined; readonly client_secret?: string | undefined },
): { readonly id: string; readonly secret: string } {
  if (authorization === undefined) return { id: body.client_id ?? '', secret: body.client_secret ?? '' };
  if (body.client_secret !== undefined) throw new RefusedError('clientNamedTwice');
  const decoded = Buffer.from(basicForm.exec(authorization)?.[1] ?? '', 'base64').toString();
  const colon = decoded.indexOf(':');
  if (colon < 0) throw refuseClient();
  const id = formDecoded(decoded.slice(0, colon));
  const named = body.client_id ?? id;
  if (named.toLowerCase() !== id.toLowerCase()) throw new RefusedError('clientNamedTwice');
  return { id, secret: formDecoded(decoded.slice(colon + 1)) };
}

const nobodysHash = hashCredential('');

/** The client that makes a request; throws `clientInvalid` for any other, in the same time. Rule: SERVICE-17. */
export async function requireClient(
  { db, clock }: Services,
  authorization: string | undefined,
  body: { readonly client_id?: string | undefined; readonly client_secret?: string | undefined },
) {
  const { id, secret } = readCredentials(authorization, body);
  // What is no id is nobody's, and not every store takes every text to look for.
  const client = await selectClient(db.read, idPattern.test(id) ? id.toLowerCase() : '', clock.now());
  const given = Buffer.from(hashCredential(secret));
  const isRight = timingSafeEqual(given, Buffer.from(client?.secretHash ?? nobodysHash));
  if (!client || !isRight) throw refuseClient();
  const endsAtMs = client.makerExpiresAt ?? Number.POSITIVE_INFINITY;
  return { id: client.id, orgId: client.orgId, scopes: client.scopes.split(' '), endsAtMs };
}

/** Asks again, inside the transaction that acts on it: throws `clientInvalid` for a client that has ended meanwhile. Rule: SERVICE-10. */
export async function confirmClient(tx: Tx, { clock }: Pick<Services, 'clock'>, id: string): Promise<void> {
  if (!(await selectClient(tx, id, clock.now()))) throw refuseClient();
}

/** Forgets tokens of services that ended a while ago, in batches; answers how many. */
export async function pruneServiceTokens({ db, clock }: Pick<Services, 'db' | 'clock'>): Promise<number> {
  const beforeMs = clock.now() - endedServiceTokenKeptMs;
  return removeInBatches(() => db.transaction((tx) => deleteOldServiceTokens(tx, beforeMs, batchRows)));
}
