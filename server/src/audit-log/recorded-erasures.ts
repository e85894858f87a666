import type { Reader } from '../db/database.ts';
import { selectRemainingUsers } from '../db/members/erasure-traces.ts';
import type { AuditLog } from '../db/schema/event-tables.ts';
import { type ErasureKey, signatureFault } from './erasure-signature.ts';

/** An erasure that the log tells of, of a user who is erased. */
interface Erasure {
  readonly sequence: number;
  readonly userId: string;
}

/** The erasures of users who are erased, or went with the whole organization afterwards; the first ones first. */
async function selectErasures(read: Reader): Promise<readonly Erasure[]> {
  const rows = await read
    .selectFrom('audit_log as a')
    .leftJoin('users as u', 'u.id', 'a.subject_id')
    .where('a.action', '=', 'user.erased')
    .orderBy('a.sequence')
    .select(['a.sequence', 'a.subject_id as userId', 'u.id as knownId', 'u.erased_at as erasedAt'])
    .execute();
  const purges = await read
    .selectFrom('audit_log')
    .where('action', '=', 'org.purged')
    .select((eb) => eb.fn.max('sequence').as('last'))
    .executeTakeFirst();
  const lastPurge = purges?.last ?? 0;
  return rows.flatMap(({ sequence, userId, knownId, erasedAt }) => {
    const isGone = knownId === null && sequence < lastPurge;
    return userId !== null && (erasedAt !== null || isGone) ? [{ sequence, userId }] : [];
  });
}

/** Returns the number of records that an erasure states; `null`: none. */
function recordsIn({ details }: Pick<AuditLog, 'details'>): number | null {
  const stated: unknown = JSON.parse(details);
  const records = typeof stated === 'object' && stated !== null && 'records' in stated ? stated.records : null;
  return typeof records === 'number' ? records : null;
}

/**
 * The erasures of a log that is gone through once, record by record in order. An erased record counts only for an erasure of
 * a user who acted, was the subject or owned it, and an erasure only for as many records as it says, with its signature. Rules: AUDIT-14, AUDIT-18, AUDIT-20.
 */
export class RecordedErasures {
  readonly #read: Reader;
  readonly #after: number;
  readonly #isWhole: boolean;
  readonly #key: ErasureKey | null;
  #remaining: ReadonlySet<string> | null = null;
  #erasures: ReadonlyMap<string, readonly number[]> | null = null;
  /** Number of records that each erasure took from, by its sequence. */
  readonly #taken = new Map<number, number>();
  /** Number of erased records. */
  count = 0;
  /** Number of records up to the noted one that were erased after it. */
  countSince = 0;
  /** How many records of erasures have a signature that could not be proved without the key. */
  unproved = 0;

  /**
   * @param log `after`: the sequence of the record that was noted earlier; `isWhole`: whether the log begins with its first
   *   record, and not at a checkpoint; `key` `null`: it is not at hand, and a signature is believed where there is one
   */
  constructor(
    read: Reader,
    { after, isWhole, key }: { readonly after: number; readonly isWhole: boolean; readonly key: ErasureKey | null },
  ) {
    this.#read = read;
    this.#key = key;
    this.#after = after;
    this.#isWhole = isWhole;
  }

  /** Returns whether the erasure of a record is accounted for, and counts it. */
  async accept(row: AuditLog): Promise<boolean> {
    const users = [row.actor_user_id, row.subject_id, row.subject_owner_id].filter((id) => id !== null);
    // A record that was erased just now is in no list yet.
    const by =
      (await this.#firstAfter(row.sequence, users, false)) ?? (await this.#firstAfter(row.sequence, users, true));
    // What says who was erased can itself not be erased.
    if (by === null || row.action === 'user.erased') return false;
    this.count += 1;
    if (row.sequence <= this.#after && by > this.#after) this.countSince += 1;
    this.#taken.set(by, (this.#taken.get(by) ?? 0) + 1);
    return true;
  }

  /** What is wrong with a record as one of an erasure; `null`: nothing, or it is of something else. Rule: AUDIT-20. */
  async faultOf(row: AuditLog): Promise<'erasure' | 'remaining' | 'unsigned' | 'forged' | null> {
    if (row.action !== 'user.erased') return null;
    if (!this.#isComplete(row)) return 'erasure';
    const fault = await signatureFault(this.#read, this.#key, row);
    if (fault) return fault;
    if (this.#key === null) this.unproved += 1;
    this.#remaining ??= new Set((await selectRemainingUsers(this.#read)).map(({ userId }) => userId));
    return this.#remaining.has(row.subject_id ?? '') ? 'remaining' : null;
  }

  /**
   * Returns whether the number of erased records is what the erasure states; at most that number where some were
   * removed since.
   */
  #isComplete(row: AuditLog): boolean {
    const [stated, taken] = [recordsIn(row), this.#taken.get(row.sequence) ?? 0];
    return stated === taken || (!this.#isWhole && stated !== null && taken < stated);
  }

  async #firstAfter(sequence: number, users: readonly string[], isAnew: boolean): Promise<number | null> {
    if (users.length === 0) return null;
    if (this.#erasures === null || isAnew) {
      const byUser = new Map<string, number[]>();
      for (const one of await selectErasures(this.#read)) {
        byUser.set(one.userId, [...(byUser.get(one.userId) ?? []), one.sequence]);
      }
      this.#erasures = byUser;
    }
    const all = users.flatMap((id) => this.#erasures?.get(id) ?? []).filter((one) => one > sequence);
    return all.length === 0 ? null : Math.min(...all);
  }
}
