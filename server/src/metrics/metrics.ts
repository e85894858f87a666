import { Counter, collectDefaultMetrics, Registry } from 'prom-client';

/** The Prometheus metrics of this process. */
export interface Metrics {
  countActivity(action: string): void;
  countFault(kind: 'internal' | 'store' | 'last-used'): void;
  /** What another system did wrong, by the refusal that came of it. */
  countUpstreamFault(refusal: string): void;
  /** The text exposition format, and its content type. */
  expose(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** A registry of its own, so that several services can live in one process. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'latchkey_' });
  const activity = new Counter({
    name: 'latchkey_activity_total',
    help: 'What people and services did, by audited action',
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
    help: 'Faults of other systems that requests needed, by the refusal that came of them',
    labelNames: ['refusal'],
    registers: [registry],
  });
  return {
    countActivity: (action) => activity.inc({ action }),
    countFault: (kind) => faults.inc({ kind }),
    countUpstreamFault: (refusal) => upstreamFaults.inc({ refusal }),
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}
