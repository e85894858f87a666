import { second } from '../../base/clock.ts';
import { connectionText } from '../../base/connection-error.ts';

/** Milliseconds for connecting, and for one response of a broker. */
export const responseMsMax = 5 * second;
const reasonCharsMax = 200;
/** So much of a secret is enough to know it again. */
const quotedChars = 8;

/** Nothing came in time. */
class LateError extends Error {}

/** Returns the result of a promise in time; throws LateError otherwise, and ignores a later result. */
export async function inTime<T>(promise: Promise<T>, ms = responseMsMax): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LateError('the broker did not respond in time')), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Functions that open, check and close connections of one kind. */
export interface Connecting<C> {
  /** Throws when it takes longer than `responseMsMax`, and holds nothing then. */
  connect(): Promise<C>;
  isAlive(connection: C): boolean;
  /** Closes it at once; operations in flight fail. Does not throw, also when it is closed already. */
  end(connection: C): void;
}

/** Shared connection to a broker: opened when it is needed, and again after it was lost. */
export interface BrokerConnection<C> {
  /** The connection, made if there is none. Throws why there cannot be one. */
  take(): Promise<C>;
  /** Ends a connection that is not worth keeping; the next who takes one gets another. */
  drop(connection: C): void;
  close(): void;
}

/**
 * Keeps one connection. Losses are not hidden from its users: they see each, and know that operations in flight may
 * have arrived or not.
 */
export function brokerConnection<C>({ connect, isAlive, end }: Connecting<C>): BrokerConnection<C> {
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

/** Returns the message of an error of a broker, or of the connection to it. */
export function textOf(error: unknown): string {
  return (error instanceof Error && connectionText(error)) || 'the broker could not be reached';
}

/**
 * Makes a reason printable: one line, short, and without secrets, which servers may quote in part or as a whole.
 * @param secrets the longest first
 */
export function printable(reason: string, secrets: readonly string[]): string {
  const masked = secrets.reduce((text, one) => text.replaceAll(one, '[secret]'), reason);
  const isInPart = secrets.some((one) => one.length > quotedChars && masked.includes(one.slice(0, quotedChars)));
  if (isInPart) return 'the broker responded with a secret';
  return masked
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, reasonCharsMax);
}
