import { second } from '../../base/clock.ts';

/** How long connecting may take, and how long a broker may take for one answer. */
export const answerMsMax = 5 * second;
const reasonCharsMax = 200;
/** So much of a secret is enough to know it again. */
const quotedChars = 8;

/** Nothing came in time. */
class LateError extends Error {}

/** What comes of a promise in time; throws LateError otherwise, and what comes then is nobody's business any more. */
export async function inTime<T>(promise: Promise<T>, ms = answerMsMax): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LateError('the broker did not answer in time')), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** How connections of one kind are made. */
export interface Connecting<C> {
  /** Throws when it takes longer than `answerMsMax`, and holds nothing then. */
  connect(): Promise<C>;
  isAlive(connection: C): boolean;
  /** Ends it at once; what is under way on it fails. Does not throw, also when it has ended already. */
  end(connection: C): void;
}

/** One connection for whoever needs it: made when it is needed, and anew when it was lost. */
export interface BrokerLine<C> {
  /** The connection, made if there is none. Throws why there cannot be one. */
  take(): Promise<C>;
  /** Ends a connection that is not worth keeping; the next who takes one gets another. */
  drop(connection: C): void;
  close(): void;
}

/**
 * Keeps one connection. Losses are not mended behind the back of those who use it: they see each, and know that what was
 * under way may have arrived or not.
 */
export function brokerLine<C>({ connect, isAlive, end }: Connecting<C>): BrokerLine<C> {
  let kept: { readonly made: Promise<C>; connection: C | null } | null = null;
  let isClosed = false;

  async function open(): Promise<C> {
    const connection = await connect();
    if (!isClosed) return connection;
    end(connection);
    throw new Error('the connection was closed');
  }

  function make(): Promise<C> {
    const entry: NonNullable<typeof kept> = { made: open(), connection: null };
    kept = entry;
    entry.made.then(
      (connection) => {
        entry.connection = connection;
      },
      () => {
        if (kept === entry) kept = null;
      },
    );
    return entry.made;
  }

  function drop(connection: C): void {
    if (kept?.connection === connection) kept = null;
    end(connection);
  }

  return {
    take: async () => {
      if (isClosed) throw new Error('the connection was closed');
      if (kept?.connection && !isAlive(kept.connection)) drop(kept.connection);
      return kept?.made ?? make();
    },
    drop,
    close: () => {
      isClosed = true;
      if (kept?.connection) drop(kept.connection);
    },
  };
}

/** What an error says, as it says it. */
export function textOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : 'the broker could not be reached';
}

/**
 * A reason on one line, short, and without what must not be told: servers quote what they dislike, in part or as a whole.
 * @param secrets the longest first
 */
export function tellable(reason: string, secrets: readonly string[]): string {
  const masked = secrets.reduce((text, one) => text.replaceAll(one, '[secret]'), reason);
  const isInPart = secrets.some((one) => one.length > quotedChars && masked.includes(one.slice(0, quotedChars)));
  if (isInPart) return 'the broker answered with what must not be told';
  return masked
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, reasonCharsMax);
}
