import { setImmediate } from 'node:timers/promises';
import { type SelectQueryBuilder, sql } from 'kysely';
import { readCounter } from '../db/counters.ts';
import type { Reader } from '../db/database.ts';
import type { AuditLog } from '../db/schema/event-tables.ts';
import type { Tables } from '../db/schema/tables.ts';

/** Filter for records; absent fields match all. */
export interface AuditFilter {
  /** Only records of this organization, and of the system as a whole; `null`: all there are. */
  readonly orgId: string | null;
  readonly actor?: string | undefined;
  readonly token?: string | undefined;
  readonly client?: string | undefined;
  readonly subject?: string | undefined;
  /** An action, or an area with a dot after it, such as `token.`. */
  readonly action?: string | undefined;
  readonly outcome?: 'success' | 'failure' | undefined;
  /** Milliseconds since 1970. */
  readonly from?: number | undefined;
  /** Milliseconds since 1970, exclusive. */
  readonly to?: number | undefined;
}

/** The place of a record in the order of time. */
export interface AuditPlace {
  /** Milliseconds since 1970. */
  readonly occurredAt: number;
  readonly sequence: number;
}

type Query = SelectQueryBuilder<Tables, 'audit_log', object>;
type Searched = 'subject_id' | 'actor_token_id' | 'actor_client_id' | 'actor_user_id' | 'action' | 'area' | 'outcome';

/** Returns the values that are searched for, the rarest first. */
function wantedValues(filter: AuditFilter): readonly (readonly [Searched, string])[] {
  const { action } = filter;
  const isArea = action?.endsWith('.');
  const all: readonly (readonly [Searched, string | undefined])[] = [
    ['subject_id', filter.subject],
    ['actor_token_id', filter.token],
    ['actor_client_id', filter.client],
    ['actor_user_id', filter.actor],
    ['action', isArea ? undefined : action],
    ['area', isArea ? action?.slice(0, -1) : undefined],
    ['outcome', filter.outcome],
  ];
  return all.flatMap(([column, value]) => (value === undefined ? [] : [[column, value] as const]));
}

type Wanted = ReturnType<typeof wantedValues>;

/** Selects records that have the rarest of the searched values, in the range of time: an index finds exactly these. */
function indexed(read: Reader, { from, to }: AuditFilter, [rarest]: Wanted): Query {
  let query: Query = read.selectFrom('audit_log');
  if (rarest) query = query.where(rarest[0], '=', rarest[1]);
  if (from !== undefined) query = query.where('occurred_at', '>=', from);
  return to === undefined ? query : query.where('occurred_at', '<', to);
}

function filtered(read: Reader, filter: AuditFilter): Query {
  const { orgId } = filter;
  const wanted = wantedValues(filter);
  let query = indexed(read, filter, wanted);
  // Behind a function, so that no engine takes the index of what half of all records have.
  for (const [column, value] of wanted.slice(1)) query = query.where(sql`coalesce(${sql.ref(column)}, '')`, '=', value);
  if (orgId === null) return query;
  return query.where((eb) => eb.or([eb('org_id', '=', orgId), eb('org_id', 'is', null)]));
}

/** In which order records are gone through: by time, and then by sequence. */
type Direction = 'asc' | 'desc';

function ordered<Q extends Query>(query: Q, direction: Direction) {
  return query.orderBy('occurred_at', direction).orderBy('sequence', direction);
}

function compared(query: Query, operator: '<' | '>' | '<=' | '>=', { occurredAt, sequence }: AuditPlace): Query {
  return query.where(({ eb, refTuple, tuple }) =>
    eb(refTuple('occurred_at', 'sequence'), operator, tuple(occurredAt, sequence)),
  );
}

/** Part of a search. */
interface Stretch {
  /** Exclusive start; `null`: the beginning. */
  readonly place: AuditPlace | null;
  /** Inclusive end; `null`: the end. */
  readonly pause: AuditPlace | null;
  readonly direction: Direction;
}

/** A filter whose range of time is that of a stretch: of two bounds, an engine takes one, and perhaps the wider. */
function narrowed(filter: AuditFilter, { place, pause, direction }: Stretch): AuditFilter {
  const [first, last] = direction === 'asc' ? [place, pause] : [pause, place];
  const from = first ? Math.max(filter.from ?? 0, first.occurredAt) : filter.from;
  const to = last ? Math.min(filter.to ?? Number.MAX_SAFE_INTEGER, last.occurredAt + 1) : filter.to;
  return { ...filter, from, to };
}

/** Cuts a stretch out exactly. */
function cut(query: Query, { place, pause, direction }: Stretch): Query {
  const begun = place ? compared(query, direction === 'asc' ? '>' : '<', place) : query;
  return pause ? compared(begun, direction === 'asc' ? '<=' : '>=', pause) : begun;
}

/** Records that are compared with the other values before other requests get their turn. */
const comparedAtOnce = 5_000;

/** Returns the place where a search should pause; `null`: none, since an index serves it, or little is left. */
async function pauseOf(read: Reader, filter: AuditFilter, rest: Stretch): Promise<AuditPlace | null> {
  const wanted = wantedValues(filter);
  if (wanted.length < 2) return null;
  const pause = await ordered(cut(indexed(read, narrowed(filter, rest), wanted), rest), rest.direction)
    .offset(comparedAtOnce - 1)
    .limit(1)
    .select(['occurred_at as occurredAt', 'sequence'])
    .executeTakeFirst();
  return pause ?? null;
}

interface Search extends Pick<Stretch, 'place' | 'direction'> {
  readonly limit: number;
  /** Only records up to this one. */
  readonly sequenceMax?: number;
}

/** Some records, however many have to be compared for them: others get their turn meanwhile. */
async function search(read: Reader, filter: AuditFilter, { direction, limit, sequenceMax, place }: Search) {
  const found: AuditLog[] = [];
  for (let stretch: Stretch = { place, direction, pause: null }; ; ) {
    stretch = { ...stretch, pause: await pauseOf(read, filter, stretch) };
    let query = cut(filtered(read, narrowed(filter, stretch)), stretch);
    if (sequenceMax !== undefined) query = query.where('sequence', '<=', sequenceMax);
    found.push(
      ...(await ordered(query, direction)
        .limit(limit - found.length)
        .selectAll()
        .execute()),
    );
    if (!stretch.pause || found.length >= limit) return found;
    stretch = { direction, place: stretch.pause, pause: null };
    await setImmediate();
  }
}

/**
 * Some records, the newest first. Rule: AUDIT-12.
 * @param before only those that come after this place in that order; `null`: from the newest on
 */
export function selectAuditPage(
  read: Reader,
  filter: AuditFilter,
  { before, limit }: { readonly before: AuditPlace | null; readonly limit: number },
): Promise<AuditLog[]> {
  return search(read, filter, { place: before, direction: 'desc', limit });
}

const rowsAtOnce = 500;

/**
 * All records that there are at the beginning, the oldest first, in batches, each in a turn of the event loop of its own.
 * Nothing of the store is held between two, however slowly they are taken. Rule: AUDIT-13.
 */
export async function* streamAudit(read: Reader, filter: AuditFilter): AsyncGenerator<readonly AuditLog[]> {
  const input = { direction: 'asc', limit: rowsAtOnce, sequenceMax: await readCounter(read, 'audit') } as const;
  let place: AuditPlace | null = null;
  do {
    const rows: readonly AuditLog[] = await search(read, filter, { ...input, place });
    if (rows.length > 0) yield rows;
    await setImmediate();
    const last = rows.length < rowsAtOnce ? undefined : rows.at(-1);
    place = last ? { occurredAt: last.occurred_at, sequence: last.sequence } : null;
  } while (place);
}
