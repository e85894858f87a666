import { openSpool, type SpooledRecord } from '../../../server/src/db/files/spool.ts';
import type { addImportedGroup } from '../../../server/src/features/groups/public.ts';
import type { createImportedOrganization } from '../../../server/src/features/org/public.ts';
import type { planUsers } from '../../../server/src/features/users/public.ts';
import type { planTokens } from '../../../server/src/operator/imported-tokens/public.ts';
import { type Imported, imported, type Problem, type Report } from './report.ts';

/** A user of a file. */
export type ImportedUser = Parameters<typeof planUsers>[1]['users'][number];
/** A group of a file. */
export type ImportedGroup = Parameters<typeof addImportedGroup>[2]['group'];
/** A token of a dump. */
export type ImportedToken = Parameters<typeof planTokens>[1]['tokens'][number];
/** The organization of a dump. */
export type ImportedOrganization = Parameters<typeof createImportedOrganization>[2]['organization'];

/** Content of the records of a file, by kind. */
interface Contents {
  readonly organization: ImportedOrganization;
  /** With the names of the user's groups, where the file has them there. */
  readonly users: { readonly user: ImportedUser; readonly groups: readonly string[] };
  /** Hash of a user's password. */
  readonly credentials: { readonly passwordHash: string };
  /** With the ids of its members. */
  readonly groups: { readonly group: ImportedGroup; readonly userIds: readonly string[] };
  readonly tokens: ImportedToken;
}

type Kind = keyof Contents;

/** A record that is valid in itself. */
export interface Staged<K extends Kind> {
  readonly number: number;
  readonly place: string;
  readonly id: string | null;
  readonly content: Contents[K];
}

/** Fields that identify the records of a kind, besides their ids. */
const keyFields: Readonly<Record<Kind, string>> = {
  organization: '_id',
  users: 'email',
  credentials: 'userId',
  groups: 'name',
  tokens: 'tokenHash',
};

const isImported = (kind: Kind): kind is Imported => (imported as readonly string[]).includes(kind);

/** The records of one file between reading and writing: on disk, so that there may be millions. */
export class Staging {
  readonly #spool = openSpool();
  readonly report: Report;

  constructor(report: Report) {
    this.report = report;
  }

  /** Keeps a record; one that has id or key of another is a problem. */
  put<K extends Kind>(kind: K, record: Omit<Staged<K>, 'number'> & { readonly key: string | null }): void {
    const { place, id, key, content } = record;
    const earlier = this.#spool.add({ kind, place, id, key, content: JSON.stringify(content) });
    if (earlier === null) return;
    this.refuse(kind, {
      place,
      field: keyFields[kind],
      message: `${id === null ? '' : 'or its id '}is that of ${earlier}, too`,
    });
  }

  /** Reports problems of a record, which counts as invalid. */
  refuse(kind: Kind, ...problems: readonly Problem[]): void {
    if (isImported(kind)) this.report.invalid[kind] += 1;
    this.report.problem(...problems);
  }

  /** Reports a problem of a staged record, and drops it. */
  reject(kind: Kind, { number, place }: Staged<Kind>, problem: Omit<Problem, 'place'>): void {
    this.#spool.drop(number);
    this.refuse(kind, { place, ...problem });
  }

  drop({ number }: Staged<Kind>): void {
    this.#spool.drop(number);
  }

  count(kind: Kind): number {
    return this.#spool.count(kind);
  }

  /** The records of a kind in the order of the file, in batches, none of them empty. */
  *rows<K extends Kind>(kind: K, size: number): Generator<readonly Staged<K>[]> {
    for (let last = 0; ; ) {
      const found = this.#spool.after(kind, last, size);
      last = found.at(-1)?.number ?? 0;
      if (found.length === 0) return;
      yield found.map((record) => this.#toStaged<K>(record));
    }
  }

  /** Returns the records of a kind that have one of some ids. */
  withIds<K extends Kind>(kind: K, ids: readonly string[]): readonly Staged<K>[] {
    return this.#spool.withIds(kind, ids).map((record) => this.#toStaged<K>(record));
  }

  close(): void {
    this.#spool.close();
  }

  #toStaged<K extends Kind>(record: SpooledRecord): Staged<K> {
    const { number, place, id } = record;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `put` kept under this very kind
    return { number, place, id, content: JSON.parse(record.content) as Contents[K] };
  }
}
