import { hash } from 'node:crypto';
import type { Principal } from '../access/principal.ts';
import type { Write } from '../access/reauthorization.ts';
import { canonicalJson } from '../base/canonical-json.ts';
import { day, second } from '../base/clock.ts';
import { ApiError, refuseInput, refuseTooMany } from '../base/errors.ts';
import { batchRows, removeInBatches } from '../db/batches.ts';
import type { Tx } from '../db/database.ts';
import {
  deleteExpired,
  deleteExpiredOf,
  insertResponse,
  type KeyOfUser,
  selectHeld,
  selectResponse,
} from '../db/idempotency-store.ts';
import type { AllServices } from '../services.ts';
import { type AnyEndpoint, addressOf, WithHeaders } from './endpoint.ts';

/** The header that names the attempt of a caller (draft-ietf-httpapi-idempotency-key-header). */
const header = 'idempotency-key';
/** On a response that is repeated. */
const replayed = { 'idempotency-replayed': 'true' };
const keyForm = /^[!-~]{1,255}$/;
/** How long a response is stored. */
const keptMs = day;
/** Responses stored for one user, and their bytes. */
const heldMax = 5_000;
const heldBytesMax = 33_554_432;

/** Input of a handler, as far as a key changes it. */
interface KeyedInput {
  readonly caller: Principal;
  readonly write: Write;
  readonly reauthorize: () => Promise<Principal>;
}

/** A call with a key. */
interface KeyedCall extends KeyOfUser {
  readonly requestHash: string;
}

type Stored = NonNullable<Awaited<ReturnType<typeof selectResponse>>>;

/** Another node carried the call out in the meantime: the transaction ends without a change. */
class RespondedError extends Error {
  readonly stored: Stored;

  constructor(stored: Stored) {
    super('the key was used');
    this.stored = stored;
  }
}

function hashOf(...parts: readonly unknown[]): string {
  return hash('sha256', canonicalJson(parts), 'base64url');
}

/** Returns JSON of a response without the members at some paths. */
function textWithout(secrets: readonly string[], response: unknown): string {
  const paths = new Set(secrets);
  const without = (value: unknown, path: string): unknown => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const kept = Object.entries(value).filter(([name]) => !paths.has(path + name));
    return Object.fromEntries(kept.map(([name, member]) => [name, without(member, `${path}${name}.`)]));
  };
  return JSON.stringify(without(response, ''));
}

/** Returns the key of a request; `null`: it has none. Throws `invalidInput`. Rule: FIT-135. */
export function idempotencyKeyOf(headers: Readonly<Record<string, string | string[] | undefined>>): string | null {
  const given = headers[header];
  if (given === undefined) return null;
  if (typeof given === 'string' && keyForm.test(given)) return given;
  throw refuseInput({ field: `headers.${header}`, message: 'must be 1 to 255 visible ASCII characters' });
}

function replay({ requestHash, response }: Stored, call: KeyedCall): WithHeaders<unknown> {
  if (requestHash !== call.requestHash) throw new ApiError('idempotencyKeyReused');
  return new WithHeaders<unknown>(JSON.parse(response), replayed);
}

/** Stores a response with the change that it is about. Throws `tooManyRequests` for a user who has too many stored. */
async function store(tx: Tx, { userId, keyHash, requestHash }: KeyedCall, { response, nowMs }: NewResponse) {
  await deleteExpiredOf(tx, userId, nowMs - keptMs);
  const bytes = Buffer.byteLength(response);
  const held = await selectHeld(tx, userId);
  if (held.count >= heldMax || held.bytes + bytes > heldBytesMax) {
    const waitMs = Math.max(second, held.oldestMs + keptMs - nowMs);
    throw refuseTooMany(heldMax, Math.ceil(waitMs / second));
  }
  const row = { user_id: userId, key_hash: keyHash, request_hash: requestHash, response, bytes, created_at: nowMs };
  await insertResponse(tx, row);
}

interface NewResponse {
  readonly response: string;
  readonly nowMs: number;
}

/** Carries out a call of an endpoint with the key of its caller. */
export type CarryOnce = (key: string, input: never, body: unknown) => Promise<unknown>;

/**
 * Returns what carries out calls of an endpoint that have an `Idempotency-Key`, once for each key; `null` for an endpoint
 * that takes none. The response is stored in the transaction of the change, so that there are both or neither. A key
 * belongs to the caller's user, and there to all sessions together or to one personal access token. Rules: FIT-135 to
 * FIT-138.
 */
export function idempotent(endpoint: AnyEndpoint, services: AllServices): CarryOnce | null {
  const { idempotency: declared } = endpoint;
  if (!declared) return null;
  const running = new Set<string>();

  /** The input with which the handler stores its response, and finds out in its transaction that it need not. */
  function keyed<I extends KeyedInput>(input: I, call: KeyedCall) {
    let isStored = false;
    const write: Write = (work) =>
      input.write(async (tx, caller) => {
        const stored = await selectResponse(tx, call, services.clock.now() - keptMs);
        if (stored) throw new RespondedError(stored);
        isStored = false;
        const result = await work(tx, caller);
        if (!isStored) throw new Error(`${endpoint.path} wrote without storing its response`);
        return result;
      });
    const remember = async <B>(tx: Tx, response: B): Promise<B> => {
      isStored = true;
      await store(tx, call, { response: textWithout(declared?.secrets ?? [], response), nowMs: services.clock.now() });
      return response;
    };
    return { ...input, write, remember };
  }

  async function carry(input: KeyedInput, call: KeyedCall): Promise<unknown> {
    const stored = await selectResponse(services.db.read, call, services.clock.now() - keptMs);
    if (stored) {
      await input.reauthorize();
      return replay(stored, call);
    }
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its type is known to the declaration alone
      return await endpoint.handle(services, keyed(input, call) as never);
    } catch (error) {
      if (error instanceof RespondedError) return replay(error.stored, call);
      throw error;
    }
  }

  return async (key, given, body) => {
    // A backend knows nothing of keys, and would carry the call out twice.
    if (endpoint.forwardsCredential && services.connector) throw new ApiError('idempotencyUnsupported');
    const input: KeyedInput = given;
    const { caller } = input;
    const keyHash = hashOf(caller.kind === 'token' ? caller.tokenId : caller.kind, key);
    const call = { userId: caller.userId, keyHash, requestHash: hashOf(addressOf(endpoint), body) };
    const place = call.userId + keyHash;
    if (running.has(place)) throw new ApiError('idempotencyKeyInUse');
    running.add(place);
    try {
      return await carry(input, call);
    } finally {
      running.delete(place);
    }
  };
}

/** Removes responses that expired, in batches; returns their number. Rule: FIT-137. */
export function pruneIdempotencyKeys({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  const untilMs = clock.now() - keptMs;
  return removeInBatches(() => db.transaction((tx) => deleteExpired(tx, untilMs, batchRows)));
}
