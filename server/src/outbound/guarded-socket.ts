import { connect, isIP, type Socket } from 'node:net';
import { addressCheck, ForbiddenAddressError, InsideError, insideWatch, type Resolve } from './address-guard.ts';
import { guardedLookup } from './guarded-lookup.ts';

interface SocketParts {
  readonly networks: readonly string[];
  readonly timeoutMs: number;
  /** The system's, without it. */
  readonly resolve?: Resolve | undefined;
}

interface Destination {
  readonly host?: string | undefined;
  readonly port?: number | string | undefined;
}

/** Connects to the mail server that an administrator stored. */
export interface GuardedSocket {
  /** Connects, as the mail library asks for it. */
  getSocket(destination: Destination, callback: (error: Error | null, found?: { connection: Socket }) => void): void;
  /** Returns whether the last address connected to is not public: then failures must not tell one from another. */
  isInside(): boolean;
}

/**
 * Connects to public addresses and those in `networks` only: each address that the name resolves to at this time is
 * checked, and connected to as checked. Fails with ForbiddenAddressError before anything is sent. Rule: CONFIG-40.
 */
export function guardedSocket({ networks, timeoutMs, resolve }: SocketParts): GuardedSocket {
  // Mail goes to public addresses with and without TLS.
  const inside = insideWatch(addressCheck('https:', networks));
  return {
    isInside: inside.isInside,
    getSocket({ host = '', port = 0 }, callback) {
      if (isIP(host) !== 0 && !inside.check(host)) {
        callback(new ForbiddenAddressError());
        return;
      }
      const socket = connect({ host, port: Number(port), lookup: guardedLookup(inside.check, resolve) });
      const late = () => socket.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }));
      const timer = setTimeout(late, timeoutMs);
      const failed = (error: Error) => {
        clearTimeout(timer);
        const isOurs = error instanceof ForbiddenAddressError || !inside.isInside();
        callback(isOurs ? error : new InsideError(error));
      };
      socket.once('error', failed).once('connect', () => {
        clearTimeout(timer);
        socket.off('error', failed);
        callback(null, { connection: socket });
      });
    },
  };
}
