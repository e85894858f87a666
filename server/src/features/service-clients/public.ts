import { timingSafeEqual } from 'node:crypto';
import type { z } from 'zod';
import type { Principal } from '../../access/principal.ts';
import { remainingScopes, type ServiceTokenRecord } from '../../access/scoped-tokens.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { second, toTimestamp } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import { idPattern } from '../../base/ids.ts';
import type { Origin } from '../../base/origin.ts';
import { type CredentialHash, hashCredential } from '../../base/secret.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { selectIsOrganizationDeleted } from '../../db/members/organization.ts';
import type { AllServices, Services } from '../../services.ts';
import { readCredentials, refuseClient } from './client-credentials.ts';
import { clientInput, createRawClientSecret, endedServiceTokenKeptMs, toClientRecord } from './service-client.ts';
import {
  type ClientProof,
  deleteOldServiceTokens,
  insertClient,
  selectClient,
  selectClients,
  selectClientsOf,
  selectServiceToken,
  updateClientDeleted,
  updateClientSecret,
  updateTokensExpire,
} from './service-client-store.ts';

type ClientServices = Pick<Services, 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/** Looks a service's token up for verification. Rules: SERVICE-10, SERVICE-12. */
export async function findServiceToken(
  { db }: Pick<Services, 'db'>,
  hash: CredentialHash,
): Promise<ServiceTokenRecord | null> {
  const row = await db.first(selectServiceToken, { hash });
  if (!row) return null;
  return {
    clientId: row.clientId,
    scopes: new Set(row.scopes.split(' ')),
    isRevoked: row.revokedAt !== null,
    expiresAtMs: Math.min(row.expiresAt, row.makerExpiresAt ?? Number.POSITIVE_INFINITY),
  };
}

/** Parses the input of a service client; `null` where it is invalid. */
export function readClientInput(given: { readonly name: unknown; readonly scopes: unknown }) {
  return clientInput.safeParse(given).data ?? null;
}

/**
 * Registers a service client, and returns it with its secret, which cannot be read later. Rules: SERVICE-7, SERVICE-18.
 */
export async function registerClient(
  tx: Tx,
  services: ClientServices,
  {
    name,
    scopes,
    orgId,
    actor,
    origin,
  }: z.output<typeof clientInput> & {
    readonly orgId: string | null;
    /** `null`: the operator. */
    readonly actor: Principal | null;
    readonly origin: Origin;
  },
) {
  const [id, nowMs, secret] = [services.newId(), services.clock.now(), createRawClientSecret()];
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
  if (!client) throw new ApiError('notFound');
  await updateClientDeleted(tx, clientId, nowMs);
  const changes = changesBetween({ name: client.name, scopes: client.scopes.split(' ') }, null);
  await appendAudit(tx, services, { action: 'service.deleted', orgId, actor, subjectId: clientId, origin, changes });
}

/** All service clients that have not ended, in order of creation, without their secrets. Rules: LEAVER-5, SERVICE-9. */
export async function listClients(read: Reader, nowMs: number) {
  return (await selectClients(read, nowMs)).map((client) => toClientRecord(client, nowMs));
}

const unknownClientHash = hashCredential('');

/** The client that makes a request, as it was proved. */
export interface ProvedClient {
  readonly id: string;
  readonly orgId: string | null;
  readonly scopes: readonly string[];
  /** Of the secret that proved it. */
  readonly secretHash: CredentialHash;
  /** Milliseconds since 1970: when the proof no longer counts. Infinity: never. */
  readonly endsAtMs: number;
}

/** Until when a secret proves a client; `null`: it does not. Takes the same time for every secret and client. */
function provedUntil(client: ClientProof | undefined, secretHash: CredentialHash, nowMs: number): number | null {
  const given = Buffer.from(secretHash);
  const isPresent = timingSafeEqual(given, Buffer.from(client?.secretHash ?? unknownClientHash));
  const isEarlier = timingSafeEqual(given, Buffer.from(client?.earlierSecretHash ?? unknownClientHash));
  if (!client) return null;
  const makerEndsMs = client.makerExpiresAt ?? Number.POSITIVE_INFINITY;
  if (isPresent) return makerEndsMs;
  const untilMs = client.earlierSecretUntil ?? 0;
  return isEarlier && nowMs < untilMs ? Math.min(makerEndsMs, untilMs) : null;
}

/**
 * The client that makes a request, by its secret or, for as long as it still counts, the one before it; throws
 * `clientInvalid` for any other, in the same time. Rules: LEAVER-8, SERVICE-17.
 */
export async function requireClient(
  { db, clock }: Services,
  authorization: string | undefined,
  body: { readonly client_id?: string | undefined; readonly client_secret?: string | undefined },
): Promise<ProvedClient> {
  const { id, secret } = readCredentials(authorization, body);
  const nowMs = clock.now();
  // Text that is no id matches nothing, and not every store accepts every text in a query.
  const client = await selectClient(db.read, idPattern.test(id) ? id.toLowerCase() : '', nowMs);
  const secretHash = hashCredential(secret);
  const endsAtMs = provedUntil(client, secretHash, nowMs);
  if (!client || endsAtMs === null) throw refuseClient();
  return { id: client.id, orgId: client.orgId, scopes: client.scopes.split(' '), secretHash, endsAtMs };
}

/**
 * Returns those scopes that are valid now: all, or the remaining ones once the organization is deleted. Rule: ORG-27.
 */
export async function presentScopes(read: Reader, scopes: readonly string[]): Promise<readonly string[]> {
  return (await selectIsOrganizationDeleted(read)) ? remainingScopes(scopes) : scopes;
}

/**
 * Asks again, inside the transaction that acts on it, whether a client and its secret still count: throws `clientInvalid`
 * where either ended meanwhile, or the organization was deleted that the scopes are for. Rules: LEAVER-8, ORG-27, SERVICE-10.
 * @returns when the proof no longer counts; Infinity: never
 */
export async function reauthorizeClient(
  tx: Tx,
  { clock }: Pick<Services, 'clock'>,
  { client, scopes }: { readonly client: ProvedClient; readonly scopes: readonly string[] },
): Promise<number> {
  const nowMs = clock.now();
  const endsAtMs = provedUntil(await selectClient(tx, client.id, nowMs), client.secretHash, nowMs);
  if (endsAtMs === null || (await presentScopes(tx, scopes)).length < scopes.length) throw refuseClient();
  return endsAtMs;
}

/**
 * Creates a new secret for a client, and returns it. The earlier one, and the tokens that it got, end after the grace
 * period, at once without one. Throws `notFound` where there is no such client, and `clientOfOthers` for a token that
 * the client would outlive. Rules: LEAVER-7, LEAVER-8.
 */
export async function rotateSecret(
  tx: Tx,
  services: ClientServices,
  {
    clientId,
    graceSeconds,
    actor,
    origin,
  }: {
    readonly clientId: string;
    readonly graceSeconds: number;
    readonly actor: Principal;
    readonly origin: Origin;
  },
): Promise<{ readonly clientSecret: string }> {
  const [nowMs, secret] = [services.clock.now(), createRawClientSecret()];
  const client = await selectClient(tx, clientId, nowMs);
  if (!client) throw new ApiError('notFound');
  if (actor.kind === 'token' && actor.tokenId !== client.createdByToken) throw new ApiError('clientOfOthers');
  const untilMs = nowMs + graceSeconds * second;
  await updateClientSecret(tx, clientId, {
    secret_hash: hashCredential(secret.expose()),
    secret_by: actor.userId,
    earlier_secret_hash: graceSeconds > 0 ? client.secretHash : null,
    earlier_secret_until: graceSeconds > 0 ? untilMs : null,
  });
  await updateTokensExpire(tx, clientId, untilMs);
  const record = { action: 'service.secret-rotated', orgId: actor.orgId, actor, subjectId: clientId, origin } as const;
  await appendAudit(tx, services, { ...record, details: { name: client.name, graceSeconds } });
  return { clientSecret: secret.expose() };
}

/** Service clients that some users made, or whose present secret they got, in order of creation. Rule: LEAVER-4. */
export async function listClientsOf(read: Reader, userIds: readonly string[], nowMs: number) {
  return (await selectClientsOf(read, userIds, nowMs)).map(({ id, name, createdAt }) => ({
    clientId: id,
    name,
    createdAt: toTimestamp(createdAt),
  }));
}

/** Removes tokens of services that ended a while ago, in batches; returns their number. */
export async function pruneServiceTokens({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  const beforeMs = clock.now() - endedServiceTokenKeptMs;
  return removeInBatches(() => db.transaction((tx) => deleteOldServiceTokens(tx, beforeMs, batchRows)));
}
