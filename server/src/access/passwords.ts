import { randomBytes } from 'node:crypto';
import { hash, verify } from '@node-rs/argon2';
import pLimit from 'p-limit';
import { RefusedError } from '../errors.ts';

/** What a hash of argon2id takes: memory in KiB, and how often it is gone through. */
export interface PasswordCost {
  readonly memoryCost: number;
  readonly timeCost: number;
}

/** OWASP's recommended cost for argon2id; about 35 ms of one core. */
const recommended: PasswordCost = { memoryCost: 19_456, timeCost: 2 };
/** One hash at a time: the other core goes on checking tokens. */
const concurrent = 1;
/** About two seconds of work; who comes later is told to try again. */
const waitingMax = 64;

/** Hashes and checks passwords, a bounded number at a time. Throws `overloaded` when too many wait. */
export interface PasswordHasher {
  /** The argon2id hash in PHC string form. */
  hash(password: string): Promise<string>;
  /** Whether the password belongs to the hash. Takes as long for `null` (no such credential) and is then `false`. */
  matches(hash: string | null, password: string): Promise<boolean>;
  /** Whether a hash was made at a lower cost than new ones are, so that it is to be made anew. Rule: AUTH-52. */
  isOutdated(hash: string): boolean;
}

const phcForm = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=\d+\$/;

/** One spelling for passwords that look the same, however the keyboard composed them (RFC 8265 has NFC). */
function normal(password: string): string {
  return password.normalize('NFC');
}

/** Makes the hasher of this process. Only tests, which sign in at every turn, ask for another cost. Rule: PASSWORD-4. */
export async function passwordHasher(chosen: PasswordCost = recommended): Promise<PasswordHasher> {
  // `algorithm` 2 is argon2id.
  const cost = { algorithm: 2, parallelism: 1, ...chosen };
  const limit = pLimit(concurrent);
  const decoy = await hash(randomBytes(16).toString('base64'), cost);

  function queued<T>(work: () => Promise<T>): Promise<T> {
    if (limit.pendingCount >= waitingMax) throw new RefusedError('overloaded', { headers: { 'retry-after': '2' } });
    return limit(work);
  }

  return {
    isOutdated: (stored) => {
      const [, memory = '0', time = '0'] = phcForm.exec(stored) ?? [];
      return Number(memory) < cost.memoryCost || Number(time) < cost.timeCost;
    },
    hash: async (password) => queued(() => hash(normal(password), cost)),
    matches: async (stored, password) => {
      const known = stored ?? decoy;
      return (await queued(() => verify(known, normal(password)))) && stored !== null;
    },
  };
}
