import { setImmediate, setTimeout } from 'node:timers/promises';
import { second } from '../../base/clock.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { LogWatch } from '../log-watch.ts';
import type { Outlet } from './outlet.ts';
import { type Next, Relay, type RelayParts } from './relay.ts';
import { RelayBoard } from './relay-board.ts';

/** How long it takes at most until a new way out is seen of which this process knows nothing. */
const lookEveryMs = second;
const errorPauseMs = second;
/** Without a sign of life for so long, nobody relays any more. */
const silentMsMax = 30 * second;
/** How long what was committed last may take to go out when the service stops. */
const flushMsMax = 3 * second;
/** How long it may take until what failed with its sink is noted. */
const endMsMax = second;

/** What all relays of this process need. */
interface RelaysParts extends RelayParts {
  readonly metrics: Pick<Metrics, 'noteRelay' | 'countRelayed' | 'forgetRelay'>;
  readonly watch: LogWatch;
  /** The ways out at the moment. One whose sink is another object than before, or whose types are others, is begun anew. */
  readonly outlets: () => Promise<readonly Outlet[]>;
}

/** The relays of this process. */
export interface Relays {
  /** Whether they are at work; a way out that fails is no reason not to be. Rule: RUN-4. */
  isAlive(): boolean;
  /** The names of the ways out that are served at the moment. */
  names(): readonly string[];
  /** Sends what is still to be sent, for some seconds unless less is left, and then begins nothing more. Rule: RUN-7. */
  close(msMax?: number): Promise<void>;
  /** Waits, after `close` and once their sinks are closed, until none of them needs the store any more. */
  ended(): Promise<void>;
}

interface RunningParts extends RelaysParts {
  readonly board: RelayBoard;
}

interface Running {
  readonly outlet: Outlet;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** Whether what is served is still what is wanted. */
function isSame({ sink, types }: Outlet, other: Outlet | undefined): boolean {
  const names = (given: Outlet['types']) => (given ? [...given].sort().join(' ') : null);
  return sink === other?.sink && names(types) === names(other.types);
}

/**
 * Waits until a way out may have something to do: something was committed after `mark` and it no longer looks as it did,
 * or the moment has come.
 */
async function waitForWork(
  { name, source }: Outlet,
  { watch, clock, board }: RunningParts,
  given: { readonly next: Next & { kind: 'wait' }; readonly mark: number; readonly signal: AbortSignal },
): Promise<void> {
  const { signal } = given;
  const { untilMs, seen } = given.next;
  const leftMs = untilMs - clock.now();
  // Where the clock was set back, the moment may be one that was never meant.
  const isDue = () => clock.now() >= untilMs || untilMs - clock.now() > leftMs;
  let { mark } = given;
  for (;;) {
    await watch.wait({ until: () => watch.mark !== mark || isDue(), signal });
    mark = watch.mark;
    if (signal.aborted || isDue() || !seen) return;
    // Where the store fails, the step that comes next tells.
    if (!(await board.isStill(name, source, { mark, seen }).catch(() => false))) return;
  }
}

/** Runs one relay until it is stopped; a store that fails is waited for. */
async function runRelay(outlet: Outlet, parts: RunningParts, signal: AbortSignal): Promise<void> {
  const { watch, log } = parts;
  const relay = new Relay(outlet, parts);
  let isFailing = false;

  async function step(): Promise<Next | null> {
    try {
      const next = await relay.step();
      isFailing = false;
      return next;
    } catch (error) {
      if (!isFailing) log.error({ err: error, relay: outlet.name }, 'events could not be relayed: the store failed');
      isFailing = true;
      return null;
    }
  }

  let endMs = Number.POSITIVE_INFINITY;
  signal.addEventListener('abort', () => {
    endMs = performance.now() + flushMsMax;
  });
  for (;;) {
    const { mark } = watch;
    const next = await step();
    if (next?.kind === 'ended' || performance.now() >= endMs) break;
    if (next?.kind === 'again') continue;
    if (signal.aborted) break;
    if (next) await waitForWork(outlet, parts, { next, mark, signal });
    else await watch.wait({ until: () => false, signal, msMax: errorPauseMs });
  }
  await relay.release().catch((error: unknown) => log.warn({ err: error }, 'a relay could not be given up'));
}

/** The relays that run, by the names of their ways out. */
function runningRelays(given: RelaysParts) {
  const parts = { ...given, board: new RelayBoard(given.db.read) };
  const running = new Map<string, Running>();

  async function stop(name: string): Promise<void> {
    const relay = running.get(name);
    relay?.stop.abort();
    await relay?.done;
    running.delete(name);
  }

  function start(outlet: Outlet): void {
    const stopping = new AbortController();
    const done = runRelay(outlet, parts, stopping.signal).catch((error: unknown) =>
      parts.log.error({ err: error, relay: outlet.name }, 'a relay broke off'),
    );
    const relay = { outlet, stop: stopping, done };
    running.set(outlet.name, relay);
    // One that ends by itself is begun anew where it is still a way out.
    void done.then(() => {
      if (running.get(outlet.name) === relay) running.delete(outlet.name);
    });
  }

  return { running, stop, start };
}

/** Begins to relay to every way out there is, and to those that come. Rules: EVENT-9, EVENT-22. */
export function startRelays(parts: RelaysParts): Relays {
  const { watch, log, metrics } = parts;
  const { running, stop, start } = runningRelays(parts);
  const stopping = new AbortController();
  let aliveMs = performance.now();
  let known: readonly string[] = [];

  async function look(): Promise<void> {
    const outlets = await parts.outlets();
    const present = new Map(outlets.map((outlet) => [outlet.name, outlet]));
    // Those that ended by themselves run no longer, and have left their figures too.
    const gone = new Set([...known, ...running.keys()].filter((name) => !present.has(name)));
    // One that is begun anew is served meanwhile, too.
    known = [...present.keys()];
    const over = [...running].filter(([name, { outlet }]) => !isSame(outlet, present.get(name)));
    await Promise.all(over.map(([name]) => stop(name)));
    for (const name of gone) metrics.forgetRelay(name);
    for (const outlet of outlets) if (!running.has(outlet.name)) start(outlet);
    aliveMs = performance.now();
  }

  async function supervise(): Promise<void> {
    const { signal } = stopping;
    // Not before everything is composed that it needs.
    await setImmediate();
    while (!signal.aborted) {
      const { mark } = watch;
      await look().catch((error: unknown) => log.error({ err: error }, 'the ways out could not be looked up'));
      await watch.wait({ until: () => watch.mark !== mark, msMax: lookEveryMs, signal });
    }
    await Promise.all([...running.keys()].map(stop));
  }

  const supervised = supervise();
  const within = (ms: number) => Promise.race([supervised, setTimeout(ms, undefined, { ref: false })]);
  return {
    names: () => known,
    isAlive: () => performance.now() - aliveMs < silentMsMax,
    close: async (msMax = flushMsMax) => {
      stopping.abort();
      // A delivery that hangs ends with its sink, which is closed next.
      await within(Math.min(msMax, flushMsMax));
    },
    ended: async () => {
      await within(endMsMax);
    },
  };
}
