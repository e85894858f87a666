import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { second } from '../base/clock.ts';
import { currentCounts } from '../base/keyed-counter.ts';
import { type CountRequest, requestCounts } from './request-counts.ts';

/** Outcomes of relayed events. */
const relayOutcomes = ['delivered', 'refused', 'unavailable', 'dead'] as const;

/** The Prometheus metrics of this process. */
export interface Metrics {
  readonly countRequest: CountRequest;
  countActivity(action: string): void;
  countFault(kind: 'internal' | 'store' | 'last-used'): void;
  /** Counts a fault of another system, by the resulting error. */
  countUpstreamFault(error: string): void;
  /**
   * Records the lag of a subscription. Rule: EVENT-28.
   * @param behind in events
   * @param delayMs since the oldest of them happened; 0 without any
   */
  noteRelay(relay: string, lag: { readonly behind: number; readonly delayMs: number }): void;
  /** Counts events by outcome: delivered, failed, or set aside. Rule: EVENT-28. */
  countRelayed(relay: string, outcome: (typeof relayOutcomes)[number], count: number): void;
  /** Drops all metrics of a deleted subscription. */
  forgetRelay(relay: string): void;
  /** The text exposition format, and its content type. */
  expose(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Shows what this process holds for requests. Rule: HTTP-32. */
function exposeCounts(registry: Registry): void {
  const held: Gauge<'what'> = new Gauge({
    name: 'latchkey_held',
    help: 'Resources in use by requests: bytes, or places, by kind',
    labelNames: ['what'],
    registers: [registry],
    collect: () => {
      for (const [what, amount] of currentCounts()) held.set({ what }, amount);
    },
  });
}

/** A registry of its own, so that several services can live in one process. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'latchkey_' });
  const activity = new Counter({
    name: 'latchkey_activity_total',
    help: 'Audited actions of users and services, by action',
    labelNames: ['action'],
    registers: [registry],
  });
  const faults = new Counter({
    name: 'latchkey_faults_total',
    help: 'Faults of the service itself, by kind',
    labelNames: ['kind'],
    registers: [registry],
  });
  const upstreamFaults = new Counter({
    name: 'latchkey_upstream_faults_total',
    help: 'Faults of other systems that requests needed, by the resulting error',
    labelNames: ['refusal'],
    registers: [registry],
  });
  exposeCounts(registry);
  const relayBehind = new Gauge({
    name: 'latchkey_relay_behind_events',
    help: 'Events that were not delivered yet, by subscription',
    labelNames: ['relay'],
    registers: [registry],
  });
  const relayDelay = new Gauge({
    name: 'latchkey_relay_delay_seconds',
    help: 'Seconds since the oldest event that was not delivered yet, by subscription',
    labelNames: ['relay'],
    registers: [registry],
  });
  const relayed = new Counter({
    name: 'latchkey_relay_events_total',
    help: 'Events, by subscription and outcome',
    labelNames: ['relay', 'outcome'],
    registers: [registry],
  });
  return {
    countRequest: requestCounts(registry),
    noteRelay(relay, { behind, delayMs }) {
      relayBehind.set({ relay }, behind);
      relayDelay.set({ relay }, delayMs / second);
    },
    countRelayed: (relay, outcome, count) => relayed.inc({ relay, outcome }, count),
    forgetRelay(relay) {
      relayBehind.remove({ relay });
      relayDelay.remove({ relay });
      for (const outcome of relayOutcomes) relayed.remove({ relay, outcome });
    },
    countActivity: (action) => activity.inc({ action }),
    countFault: (kind) => faults.inc({ kind }),
    countUpstreamFault: (error) => upstreamFaults.inc({ refusal: error }),
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}
