import { type Clock, second } from '../base/clock.ts';
import { ApiError, type ApiErrorName } from '../base/errors.ts';
import { refuseUnavailable } from './connector-errors.ts';

const failuresMax = 5;
const openMs = 5 * second;
const failing = new Set<ApiErrorName>(['connectorUnavailable', 'connectorTimeout']);

/** Keeps requests away from a backend that does not respond. */
export interface CircuitBreaker {
  /**
   * Runs the work, or throws `connectorUnavailable` at once while the circuit is open: for 5 seconds after 5 failures
   * in a row, and then until one trial has shown the backend's state. Failures are `connectorUnavailable` and
   * `connectorTimeout`; any other outcome is the backend's response. If all failures in a row were time-outs of one
   * sender, that sender may be asking for too much, and the circuit stays closed. Rule: TEAM-30.
   * @param sender the sender of the work; absent: none in particular
   */
  run<T>(work: () => Promise<T>, sender?: string): Promise<T>;
}

function isFailure(error: unknown): boolean {
  return error instanceof ApiError && failing.has(error.errorName);
}

/** A breaker that is closed. */
export function circuitBreaker(clock: Clock): CircuitBreaker {
  let failures = 0;
  const slowFor = new Set<string | undefined>();
  let isDown = false;
  let openedMs: number | null = null;
  let isTrying = false;

  /** A clock that was set back must not keep it open: then the time is over. */
  function waitMs(sinceMs: number): number {
    const elapsedMs = clock.now() - sinceMs;
    return elapsedMs < 0 ? 0 : Math.max(0, openMs - elapsedMs);
  }

  function close(): void {
    failures = 0;
    slowFor.clear();
    isDown = false;
    openedMs = null;
  }

  function fail(error: unknown, isTry: boolean, sender: string | undefined): void {
    failures += 1;
    if (error instanceof ApiError && error.errorName === 'connectorUnavailable') isDown = true;
    else slowFor.add(sender);
    const isTheBackend = isDown || slowFor.size > 1 || slowFor.has(undefined);
    // What began before it opened and fails later says nothing new.
    if (isTry || (openedMs === null && failures >= failuresMax && isTheBackend)) openedMs = clock.now();
  }

  return {
    run: async (work, sender) => {
      const isTry = openedMs !== null;
      if (openedMs !== null) {
        const restMs = waitMs(openedMs);
        if (isTrying || restMs > 0) throw refuseUnavailable('it is left alone after failures in a row', restMs);
        isTrying = true;
      }
      try {
        const result = await work();
        close();
        return result;
      } catch (error) {
        if (isFailure(error)) fail(error, isTry, sender);
        else close();
        throw error;
      } finally {
        if (isTry) isTrying = false;
      }
    },
  };
}
