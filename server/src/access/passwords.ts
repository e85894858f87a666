import { randomBytes } from 'node:crypto';
import { hash, verify } from '@node-rs/argon2';
import pLimit from 'p-limit';
import { ApiError } from '../base/errors.ts';

/** Cost of a hash of argon2id: memory in KiB, and number of passes. */
export interface PasswordCost {
  readonly memoryCost: number;
  readonly timeCost: number;
}

/** OWASP's recommended cost for argon2id; about 35 ms of one core. */
const recommended: PasswordCost = { memoryCost: 19_456, timeCost: 2 };
/** One hash at a time: the other core goes on checking tokens. */
const concurrent = 1;
const waitingMax = 64;

/** Hashes and checks passwords, a bounded number at a time. Throws `overloaded` when too many wait, or too long. */
export interface PasswordHasher {
  /** The argon2id hash in PHC string form. */
  hash(password: string): Promise<string>;
  /**
   * Returns whether the password belongs to the hash. A mismatch takes as long for `null` (no such credential), and for
   * each hash whatever its cost. A hash that costs more than `isVerifiable` allows matches nothing. Rules: AUTH-9,
   * CRED-5.
   */
  matches(hash: string | null, password: string): Promise<boolean>;
  /** Returns whether a hash has a lower cost than new ones, so that it is to be replaced. Rule: AUTH-52. */
  isOutdated(hash: string): boolean;
  /** Has refusals take as long as for these hashes from now on. Rule: CRED-5. */
  levelWith(hashes: readonly string[]): Promise<void>;
}

const phcForm = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,3})\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{16,86}$/;
/**
 * Maximum cost of one check: memory in KiB, KiB written in all passes, lanes. Seven times the cost of our own hashes, a
 * quarter of a second; the defaults of other libraries (64 MiB, 3 or 4 passes) are below.
 */
const costMax = { memory: 65_536, work: 262_144, lanes: 16 };

interface HashCost extends PasswordCost {
  readonly parallelism: number;
}

function costOf(stored: string): HashCost | null {
  const [, memoryCost = 0, timeCost = 0, parallelism = 0] = phcForm.exec(stored)?.map(Number) ?? [];
  return timeCost > 0 && parallelism > 0 && memoryCost >= 8 * parallelism
    ? { memoryCost, timeCost, parallelism }
    : null;
}

/** Returns the KiB written in all passes, which the time of a hash is proportional to. */
function workOf({ memoryCost, timeCost }: PasswordCost): number {
  return memoryCost * timeCost;
}

/** About two seconds of work, whatever it consists of; later requests get a 503. */
const usualBounds = { waitMsMax: 5_000, workMax: waitingMax * workOf(recommended) };

/** Returns whether a password can be checked by its hash, at an acceptable cost. Rule: CRED-5. */
export function isVerifiable(stored: string): boolean {
  const cost = costOf(stored);
  if (!cost) return false;
  return cost.memoryCost <= costMax.memory && workOf(cost) <= costMax.work && cost.parallelism <= costMax.lanes;
}

/** One spelling for passwords that look the same, however the keyboard composed them (RFC 8265 has NFC). */
function normal(password: string): string {
  return password.normalize('NFC');
}

function overloaded(): ApiError {
  return new ApiError('overloaded', { headers: { 'retry-after': '2' } });
}

/** Limits of the queue for hashing. */
interface WaitingBounds {
  /** Milliseconds that a hash may wait for its turn. */
  readonly waitMsMax: number;
  /** Total cost of the queue, in KiB written. */
  readonly workMax: number;
}

/** A line in which one waits for the next, as long as the work that waits is bounded. */
function boundedLine({ waitMsMax, workMax }: WaitingBounds) {
  const limit = pLimit(concurrent);
  let waitingWork = 0;
  return async <T>(workSize: number, work: () => Promise<T>): Promise<T> => {
    if (limit.pendingCount >= waitingMax || waitingWork >= workMax) throw overloaded();
    const cameMs = performance.now();
    waitingWork += workSize;
    try {
      return await limit(() => {
        if (performance.now() - cameMs > waitMsMax) throw overloaded();
        return work();
      });
    } finally {
      waitingWork -= workSize;
    }
  };
}

/**
 * Makes the hasher of this process. Only tests, which sign in at every turn, ask for another cost or other bounds. Rules:
 * PASSWORD-4, CRED-5.
 */
export async function passwordHasher(
  chosen: PasswordCost = recommended,
  bounds: Partial<WaitingBounds> = {},
): Promise<PasswordHasher> {
  // `algorithm` 2 is argon2id.
  const own = { algorithm: 2, parallelism: 1, ...chosen };
  const queued = boundedLine({ ...usualBounds, ...bounds });
  const secret = randomBytes(16).toString('base64');
  /** The most expensive hash known, of a password that no one has: the cost of a mismatch. */
  let decoy = await hash(secret, own);
  let level: HashCost = own;

  async function levelWith(hashes: readonly string[]): Promise<void> {
    for (const cost of hashes.filter(isVerifiable).map(costOf)) {
      if (!cost || workOf(cost) <= workOf(level)) continue;
      const made = await queued(workOf(cost), () => hash(secret, { algorithm: 2, ...cost }));
      if (workOf(cost) > workOf(level)) [level, decoy] = [cost, made];
    }
  }

  /** Spends the remaining cost of a mismatch, in passes as long as those of the most expensive hash. */
  async function makeUp(done: HashCost, password: string): Promise<void> {
    const missing = workOf(level) - workOf(done);
    const { timeCost, parallelism } = level;
    const memoryCost = Math.floor(missing / timeCost);
    if (memoryCost < 8 * parallelism) return;
    await queued(missing, () => hash(password, { algorithm: 2, memoryCost, timeCost, parallelism }));
  }

  return {
    isOutdated: (stored) => {
      const { memoryCost = 0, timeCost = 0 } = costOf(stored) ?? {};
      return memoryCost < own.memoryCost || timeCost < own.timeCost;
    },
    hash: async (password) => queued(workOf(own), () => hash(normal(password), own)),
    matches: async (stored, password) => {
      const cost = stored !== null && isVerifiable(stored) ? costOf(stored) : null;
      if (stored === null || cost === null) {
        await queued(workOf(level), () => verify(decoy, normal(password)));
        return false;
      }
      await levelWith([stored]);
      if (await queued(workOf(cost), () => verify(stored, normal(password)))) return true;
      await makeUp(cost, normal(password));
      return false;
    },
    levelWith,
  };
}
