import type { Server } from 'node:http';
import type { Logger } from 'pino';
import { second } from '../../base/clock.ts';

/**
 * Milliseconds that requests may wait to be read. Far more than any one request takes, so that a slow one causes no
 * rejections.
 */
const usualWaitMsMax = 2.5 * second;

/**
 * Since when connections have been waiting to be taken in, by the monotonic clock; `null` while none is. A turn of the
 * event loop takes in one: so they wait from the first of a row of turns on that each took one in.
 */
function waitingSince(server: Server): () => number | null {
  let sinceMs: number | null = null;
  let hasTakenIn = false;

  function checkAgain(): void {
    if (hasTakenIn) setImmediate(checkAgain);
    else sinceMs = null;
    hasTakenIn = false;
  }

  server.on('connection', () => {
    hasTakenIn = true;
    if (sinceMs !== null) return;
    sinceMs = performance.now();
    setImmediate(checkAgain);
  });
  return () => sinceMs;
}

/**
 * Detects requests that arrived during overload. Requests on open connections are all read and mostly answered in one
 * turn of the event loop, so its age is how long they have waited at least; others wait to be accepted. Rejecting a
 * request costs a small part of answering it: so the queue empties quickly, and accepted requests wait for a bounded
 * time. Rule: HTTP-31.
 * @param waitMsMax milliseconds that requests may wait
 * @returns whether a request whose headers had arrived at `nowMs`, by the monotonic clock, is to be rejected
 */
export function loadShedder(server: Server, log: Logger, waitMsMax = usualWaitMsMax): (nowMs: number) => boolean {
  const waiting = waitingSince(server);
  let begunMs: number | null = null;
  let rejected = 0;
  let loggedMs = 0;

  function end(): void {
    begunMs = null;
    if (rejected === 0 || performance.now() - loggedMs < second) return;
    log.warn({ requests: rejected }, 'overload: requests rejected');
    loggedMs = performance.now();
    rejected = 0;
  }

  return (nowMs) => {
    if (begunMs === null) {
      begunMs = nowMs;
      setImmediate(end);
    }
    if (nowMs - Math.min(begunMs, waiting() ?? begunMs) <= waitMsMax) return false;
    rejected += 1;
    return true;
  };
}
