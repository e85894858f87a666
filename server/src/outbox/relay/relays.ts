import { setImmediate, setTimeout } from 'node:timers/promises';
import { second } from '../../base/clock.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { LogWatch } from '../log-watch.ts';
import { type Next, Relay, type RelayParts } from './relay.ts';
import { RelayStateCache } from './relay-state-cache.ts';
import type { Subscription } from './subscription.ts';

/** The longest time until a new subscription is noticed that another process created. */
const pollEveryMs = second;
const errorPauseMs = second;
/** Without activity for this long, relaying has stopped. */
const silentMsMax = 30 * second;
/** Milliseconds for sending the last commits when the service stops. */
const flushMsMax = 3 * second;
/** Milliseconds for recording a failure that ended with its sink. */
const endMsMax = second;

/** Dependencies of all relays of this process. */
interface RelaysParts extends RelayParts {
  readonly metrics: Pick<Metrics, 'noteRelay' | 'countRelayed' | 'forgetRelay'>;
  readonly watch: LogWatch;
  /** Returns the present subscriptions. One with a different sink or different types than before is restarted. */
  readonly subscriptions: () => Promise<readonly Subscription[]>;
}

/** The relays of this process. */
export interface Relays {
  /** Returns whether relaying works; a failing destination is no reason that it doesn't. Rule: RUN-4. */
  isAlive(): boolean;
  /** Returns the names of the subscriptions that are served now. */
  names(): readonly string[];
  /** Sends pending events, for some seconds unless less is left, and then stops. Rule: RUN-7. */
  close(msMax?: number): Promise<void>;
  /** Waits, after `close` and once their sinks are closed, until none of them needs the store any more. */
  ended(): Promise<void>;
}

interface RunningParts extends RelaysParts {
  readonly states: RelayStateCache;
}

interface Running {
  readonly subscription: Subscription;
  readonly stop: AbortController;
  readonly done: Promise<void>;
}

/** Returns whether a subscription that is served is still the wanted one. */
function isSame({ sink, types }: Subscription, other: Subscription | undefined): boolean {
  const names = (given: Subscription['types']) => (given ? [...given].sort().join(' ') : null);
  return sink === other?.sink && names(types) === names(other.types);
}

/**
 * Waits until a subscription may have work: something was committed after `mark` and its state has changed, or the time
 * has come.
 */
async function waitForWork(
  { name, source }: Subscription,
  { watch, clock, states }: RunningParts,
  given: { readonly next: Next & { kind: 'wait' }; readonly mark: number; readonly signal: AbortSignal },
): Promise<void> {
  const { signal } = given;
  const { untilMs, seen } = given.next;
  const leftMs = untilMs - clock.now();
  // If the clock was set back, the time may be one that was never meant.
  const isDue = () => clock.now() >= untilMs || untilMs - clock.now() > leftMs;
  let { mark } = given;
  for (;;) {
    await watch.wait({ until: () => watch.version !== mark || isDue(), signal });
    mark = watch.version;
    if (signal.aborted || isDue() || !seen) return;
    // Where the store fails, the step that comes next tells.
    if (!(await states.isStill(name, source, { version: mark, seen }).catch(() => false))) return;
  }
}

/** Runs one relay until it is stopped; a store that fails is waited for. */
async function runRelay(subscription: Subscription, parts: RunningParts, signal: AbortSignal): Promise<void> {
  const { watch, log } = parts;
  const relay = new Relay(subscription, parts);
  let isFailing = false;

  async function step(): Promise<Next | null> {
    try {
      const next = await relay.step();
      isFailing = false;
      return next;
    } catch (error) {
      if (!isFailing)
        log.error({ err: error, relay: subscription.name }, 'events could not be relayed: the store failed');
      isFailing = true;
      return null;
    }
  }

  let endMs = Number.POSITIVE_INFINITY;
  signal.addEventListener('abort', () => {
    endMs = performance.now() + flushMsMax;
  });
  for (;;) {
    const { version: mark } = watch;
    const next = await step();
    if (next?.kind === 'ended' || performance.now() >= endMs) break;
    if (next?.kind === 'again') continue;
    if (signal.aborted) break;
    if (next) await waitForWork(subscription, parts, { next, mark, signal });
    else await watch.wait({ until: () => false, signal, msMax: errorPauseMs });
  }
  await relay.release().catch((error: unknown) => log.warn({ err: error }, 'a relay could not be given up'));
}

/** Running relays, by the names of their subscriptions. */
function runningRelays(given: RelaysParts) {
  const parts = { ...given, states: new RelayStateCache(given.db.read) };
  const running = new Map<string, Running>();

  async function stop(name: string): Promise<void> {
    const relay = running.get(name);
    relay?.stop.abort();
    await relay?.done;
    running.delete(name);
  }

  function start(subscription: Subscription): void {
    const stopping = new AbortController();
    const done = runRelay(subscription, parts, stopping.signal).catch((error: unknown) =>
      parts.log.error({ err: error, relay: subscription.name }, 'a relay broke off'),
    );
    const relay = { subscription, stop: stopping, done };
    running.set(subscription.name, relay);
    // A relay that ended is restarted where its subscription still exists.
    void done.then(() => {
      if (running.get(subscription.name) === relay) running.delete(subscription.name);
    });
  }

  return { running, stop, start };
}

/** Starts relaying for all subscriptions, present and future. Rules: EVENT-9, EVENT-22. */
export function startRelays(parts: RelaysParts): Relays {
  const { watch, log, metrics } = parts;
  const { running, stop, start } = runningRelays(parts);
  const stopping = new AbortController();
  let aliveMs = performance.now();
  let known: readonly string[] = [];

  async function poll(): Promise<void> {
    const subscriptions = await parts.subscriptions();
    const present = new Map(subscriptions.map((subscription) => [subscription.name, subscription]));
    // Those that ended by themselves run no longer, and have left their figures too.
    const gone = new Set([...known, ...running.keys()].filter((name) => !present.has(name)));
    // One that is being restarted counts as served, too.
    known = [...present.keys()];
    const over = [...running].filter(([name, { subscription }]) => !isSame(subscription, present.get(name)));
    await Promise.all(over.map(([name]) => stop(name)));
    for (const name of gone) metrics.forgetRelay(name);
    for (const subscription of subscriptions) if (!running.has(subscription.name)) start(subscription);
    aliveMs = performance.now();
  }

  async function supervise(): Promise<void> {
    const { signal } = stopping;
    // Not before everything is composed that it needs.
    await setImmediate();
    while (!signal.aborted) {
      const { version: mark } = watch;
      await poll().catch((error: unknown) => log.error({ err: error }, 'the subscriptions could not be read'));
      await watch.wait({ until: () => watch.version !== mark, msMax: pollEveryMs, signal });
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
