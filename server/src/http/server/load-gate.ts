import type { Server } from 'node:http';
import type { Logger } from 'pino';
import { second } from '../../base/clock.ts';

/** How long requests may wait to be read. Far above what any one request takes, so that a slow one turns nobody away. */
const usualWaitMsMax = 2.5 * second;

/**
 * Since when connections have been waiting to be taken in, by the monotonic clock; `null` while none is. A turn of the
 * event loop takes in one: so they wait from the first of a row of turns on that each took one in.
 */
function waitingSince(server: Server): () => number | null {
  let sinceMs: number | null = null;
  let hasTakenIn = false;

  function lookAgain(): void {
    if (hasTakenIn) setImmediate(lookAgain);
    else sinceMs = null;
    hasTakenIn = false;
  }

  server.on('connection', () => {
    hasTakenIn = true;
    if (sinceMs !== null) return;
    sinceMs = performance.now();
    setImmediate(lookAgain);
  });
  return () => sinceMs;
}

/**
 * What tells requests that came when there was too much to do. Those on connections that are there are all read and
 * mostly answered in one turn of the event loop, so its age is how long they have waited at least; others wait to be
 * taken in. Turning requests away costs a small part of answering them: so the queue is gone in a moment, and who is let
 * in waits for a bounded time. Rule: HTTP-31.
 * @param waitMsMax how long requests may wait
 * @returns whether a request whose headers were there at `nowMs`, by the monotonic clock, is to be turned away
 */
export function loadGate(server: Server, log: Logger, waitMsMax = usualWaitMsMax): (nowMs: number) => boolean {
  const waiting = waitingSince(server);
  let begunMs: number | null = null;
  let turnedAway = 0;
  let toldMs = 0;

  function end(): void {
    begunMs = null;
    if (turnedAway === 0 || performance.now() - toldMs < second) return;
    log.warn({ requests: turnedAway }, 'turned away: more came than could be answered');
    toldMs = performance.now();
    turnedAway = 0;
  }

  return (nowMs) => {
    if (begunMs === null) {
      begunMs = nowMs;
      setImmediate(end);
    }
    if (nowMs - Math.min(begunMs, waiting() ?? begunMs) <= waitMsMax) return false;
    turnedAway += 1;
    return true;
  };
}
