/** Kinds of imported records. */
export const imported = ['users', 'groups', 'tokens'] as const;

/** One of them. */
export type Imported = (typeof imported)[number];

/** Outcome of a record. `skipped`: it stays as it is here; `invalid`: there is a problem with it. */
type RecordOutcome = 'created' | 'updated' | 'unchanged' | 'skipped' | 'invalid';

/** A problem of a record, and its place. Contains no value of the record. */
export interface Problem {
  /** Such as `line 7`. */
  readonly place: string;
  readonly field: string;
  readonly message: string;
}

const recordOutcomes: readonly RecordOutcome[] = ['created', 'updated', 'unchanged', 'skipped', 'invalid'];
const problemsListed = 100;
const problemsShown = 20;

type Counts = Record<Imported, Record<RecordOutcome, number>>;

function noCounts(): Counts {
  const none = () => ({ created: 0, updated: 0, unchanged: 0, skipped: 0, invalid: 0 });
  return { users: none(), groups: none(), tokens: none() };
}

/** Counts of one pass over the records. */
export class Tally {
  readonly counts = noCounts();
  /** Users who join a group. */
  memberships = 0;
  passwords = 0;
  /** Why records are skipped, and how many are. */
  readonly reasons = new Map<string, number>();

  count(kind: Imported, outcome: RecordOutcome, number = 1): void {
    this.counts[kind][outcome] += number;
  }

  skip(kind: Imported, reason: string): void {
    this.count(kind, 'skipped');
    this.note(reason, 1);
  }

  /** Notes why something of a record stays as it is here. */
  note(reason: string, number: number): void {
    if (number > 0) this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + number);
  }

  /** Counts who joins a group, and who does not since they were taken out of it here. Rule: CRED-6. */
  join({ joining, takenOut }: { readonly joining: readonly unknown[]; readonly takenOut: number }): void {
    this.memberships += joining.length;
    this.note('memberships that were taken away here', takenOut);
  }

  /** Returns whether the store differs afterwards. */
  get isChange(): boolean {
    const isWritten = imported.some((kind) => this.counts[kind].created + this.counts[kind].updated > 0);
    return isWritten || this.memberships > 0;
  }
}

/** All that an import has to tell of a file. */
export class Report {
  readonly problems: Problem[] = [];
  problemCount = 0;
  /** Records with a problem. */
  readonly invalid: Record<Imported, number> = { users: 0, groups: 0, tokens: 0 };
  /** Kinds of data that are not imported by design, and their numbers. */
  readonly left = new Map<string, number>();

  /** Records problems of a record. */
  problem(...problems: readonly Problem[]): void {
    this.problemCount += problems.length;
    for (const problem of problems) if (this.problems.length < problemsListed) this.problems.push(problem);
  }

  leave(what: string): void {
    this.left.set(what, (this.left.get(what) ?? 0) + 1);
  }

  /** For programs. */
  toData(tally: Tally) {
    const { users, groups, tokens } = tally.counts;
    const { invalid } = this;
    return {
      users: { ...users, invalid: invalid.users },
      groups: { ...groups, invalid: invalid.groups },
      tokens: { ...tokens, invalid: invalid.tokens },
      memberships: tally.memberships,
      passwords: tally.passwords,
      skipped: Object.fromEntries(tally.reasons),
      left: Object.fromEntries(this.left),
      problems: { count: this.problemCount, listed: this.problems },
    };
  }

  /** Returns the text for people. */
  toText(tally: Tally): string {
    const counts = imported.flatMap((kind) => {
      const all = { ...tally.counts[kind], invalid: this.invalid[kind] };
      const named = recordOutcomes.filter((outcome) => all[outcome] > 0).map((outcome) => `${all[outcome]} ${outcome}`);
      return named.length > 0 ? [`${kind}: ${named.join(', ')}`] : [];
    });
    const rest = [
      ...(tally.memberships > 0 ? [`members joining groups: ${tally.memberships}`] : []),
      ...(tally.passwords > 0 ? [`passwords taken over: ${tally.passwords}`] : []),
      ...[...tally.reasons].map(([reason, number]) => `skipped, ${reason}: ${number}`),
      ...[...this.left].map(([what, number]) => `left out, ${what}: ${number}`),
    ];
    return [...counts, ...rest, ...this.#problemText()].join('\n');
  }

  #problemText(): readonly string[] {
    if (this.problemCount === 0) return [];
    const shown = this.problems.slice(0, problemsShown);
    const more = this.problemCount - shown.length;
    return [
      `problems: ${this.problemCount}`,
      ...shown.map(({ place, field, message }) => `  ${place}: ${field} ${message}`),
      ...(more > 0 ? [`  and ${more} more; --json lists up to ${problemsListed}`] : []),
    ];
  }
}
