import type { StoreConnection, StoreStatement } from './store-connection.ts';
import type { Json } from './test-app.ts';

/** First rows of a run. */
interface Since {
  /** An id: they count up. */
  readonly user: string;
  readonly event: number;
  readonly audit: number;
}

/** The place after everything that is stored now. */
export function now(store: StoreConnection): Since {
  const last = (sql: string) => Number(store.prepare(sql).pluck().get() ?? 0);
  return {
    user: String(store.prepare('SELECT max(id) FROM users').pluck().get() ?? ''),
    event: last('SELECT max(sequence) FROM outbox'),
    audit: last('SELECT max(sequence) FROM audit_log'),
  };
}

interface Told {
  readonly email: string;
  readonly fullName: string;
  readonly firstName?: string;
  readonly middleName?: string;
  readonly lastName?: string;
  readonly designation?: string;
}

interface Known {
  readonly told: Told;
  readonly isDeleted: boolean;
}

/** Returns what a consumer knows of a user after an event; throws where the event cannot follow. */
function afterEvent(known: Known | undefined, eventType: string, told: Told): Known {
  const isActive = known !== undefined && !known.isDeleted;
  if (eventType === 'userAdded') {
    if (isActive) throw new Error('userAdded of somebody active');
    return { told: { ...known?.told, ...told }, isDeleted: false };
  }
  if (!isActive) throw new Error(`${eventType} of nobody active`);
  return eventType === 'userDeleted' ? { told: known.told, isDeleted: true } : { told, isDeleted: false };
}

function toTold({ email, fullName, firstName, middleName, lastName, designation }: Json): Told {
  const given = Object.entries({ email, fullName, firstName, middleName, lastName, designation });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined && value !== null)) as unknown as Told;
}

const prepared = new WeakMap<StoreConnection, Map<string, StoreStatement>>();

/** The rows of a query, which is prepared only once. */
function rowsOf(store: StoreConnection, sql: string, ...args: readonly unknown[]): Json[] {
  const statements = prepared.get(store) ?? new Map<string, StoreStatement>();
  prepared.set(store, statements);
  const statement = statements.get(sql) ?? store.prepare(sql);
  statements.set(sql, statement);
  return statement.all(...args);
}

/** Returns the count of a query, as `n`. */
function countOf(store: StoreConnection, sql: string, ...args: readonly unknown[]): number {
  return Number(rowsOf(store, sql, ...args)[0]?.n ?? 0);
}

type Rebuilt = ReturnType<typeof rebuilt>;

/** Rebuilds all users as a consumer of the events knows them, and those who were ever deleted. */
function rebuilt(store: StoreConnection, since: Since) {
  const users = new Map<string, Known>();
  const wereDeleted = new Set<string>();
  const faults: string[] = [];
  const rows = rowsOf(store, 'SELECT * FROM outbox WHERE sequence > ? ORDER BY sequence', since.event);
  for (const { event_type, payload } of rows) {
    const { userId, ...rest } = JSON.parse(payload);
    const known = users.get(userId);
    if (event_type === 'userDeleted') {
      wereDeleted.add(userId);
      if (known?.told.email !== rest.email) faults.push('event: userDeleted with another address');
    }
    try {
      users.set(userId, afterEvent(known, event_type, toTold(rest)));
    } catch (error) {
      faults.push(`event: ${String(error)}`);
    }
  }
  return { users, wereDeleted, faults, count: rows.length };
}

function eventFaults({ users: userList, faults: found }: Rebuilt, users: readonly Json[]): string[] {
  const faults = [...found];
  for (const user of users) {
    const { id, email, full_name, first_name, middle_name, last_name, designation, is_deleted } = user;
    const names = { fullName: full_name, firstName: first_name, middleName: middle_name, lastName: last_name };
    const stored = JSON.stringify([toTold({ email, ...names, designation }), is_deleted === 1]);
    const known = userList.get(id);
    const told = JSON.stringify([known && toTold(known.told), known?.isDeleted]);
    if (stored !== told) faults.push(`event: stored ${stored}, told ${told}`);
  }
  if (userList.size !== users.length) faults.push('event: of somebody who is not stored');
  return faults;
}

function groupFaults(store: StoreConnection, users: readonly Json[]): string[] {
  const joined = 'SELECT g.type FROM group_members m JOIN user_groups g ON g.id = m.group_id WHERE m.user_id = ?';
  return users.flatMap(({ id, is_deleted }) => {
    const groups = rowsOf(store, joined, id).map(({ type }) => type);
    if (is_deleted === 1) return groups.length > 0 ? [`group: a deleted user is in ${groups.join(' ')}`] : [];
    return groups.includes('everyone') ? [] : ['group: an active user is not in everyone'];
  });
}

/** Returns credentials of deleted users that are valid, which they must never be again. */
function credentialFaults(store: StoreConnection, wereDeleted: ReadonlySet<string>, users: readonly Json[]): string[] {
  return users.flatMap(({ id, is_deleted }) => {
    if (!wereDeleted.has(id)) return [];
    const count = (table: string, condition: string) =>
      countOf(store, `SELECT count(*) AS n FROM ${table} WHERE user_id = ? AND ${condition}`, id);
    const sessions = count('sessions', 'ended_at IS NULL');
    const passwords = count('password_credentials', '1 = 1');
    // While the owner is deleted no token counts; from the restoration on it has to be revoked.
    const tokens = is_deleted === 1 ? 0 : count('personal_access_tokens', 'revoked_at IS NULL');
    const live = { sessions, passwords, tokens };
    return sessions + passwords + tokens > 0 ? [`credential: of before still count ${JSON.stringify(live)}`] : [];
  });
}

/** Returns all faults of the users of a run, and of their events; each begins with its kind. */
export function faultsIn(store: StoreConnection, since: Since): string[] {
  const users = rowsOf(store, 'SELECT * FROM users WHERE id > ? ORDER BY id', since.user);
  const addresses = new Set(users.map(({ email }) => String(email).toLowerCase()));
  const told = rebuilt(store, since);
  const acts = "SELECT count(*) AS n FROM audit_log WHERE sequence > ? AND action LIKE 'user.%'";
  const audited = countOf(store, acts, since.audit);
  return [
    ...(addresses.size < users.length ? ['address: two users have the same'] : []),
    ...groupFaults(store, users),
    ...credentialFaults(store, told.wereDeleted, users),
    ...eventFaults(told, users),
    ...(audited === told.count ? [] : [`event: ${told.count} events, ${audited} audit rows`]),
  ];
}
