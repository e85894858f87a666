import { METHODS } from 'node:http';
import { Counter, Histogram, type HistogramConfiguration, type Registry } from 'prom-client';
import { second } from '../base/clock.ts';

/** Upper bounds of the buckets, in milliseconds. */
const boundsMs = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000] as const;
const statusClasses = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;
/** Route of requests that no route takes. */
const noRoute = 'none';

type Label = 'method' | 'route' | 'status';

/** The requests of one method to one route. */
class RouteCount {
  readonly byClass = statusClasses.map(() => 0);
  /** By bucket; the last one is of what took longer than all bounds. */
  readonly byTime = [...boundsMs, Number.POSITIVE_INFINITY].map(() => 0);
  sumMs = 0;

  count(status: number, ms: number): void {
    const place = Math.floor(status / 100) - 1;
    this.byClass[place] = (this.byClass[place] ?? 0) + 1;
    let bucket = 0;
    while (bucket < boundsMs.length && ms > (boundsMs[bucket] ?? 0)) bucket += 1;
    this.byTime[bucket] = (this.byTime[bucket] ?? 0) + 1;
    this.sumMs += ms;
  }
}

interface LabelledCount {
  readonly method: string;
  readonly route: string;
  readonly counts: RouteCount;
}

const name = 'latchkey_http_request_duration_seconds';

const declared: HistogramConfiguration<Label | 'le'> = {
  name,
  help: 'Seconds from the headers of a request to those of its response, by method and route',
  labelNames: ['method', 'route'],
  buckets: boundsMs.map((ms) => ms / second),
  registers: [],
};

/** A histogram whose values are read when it is shown. */
class RequestDurations extends Histogram<Label | 'le'> {
  readonly #empty = new Histogram(declared);
  readonly #all: () => readonly LabelledCount[];

  constructor(all: () => readonly LabelledCount[]) {
    super(declared);
    this.#all = all;
  }

  override async get() {
    const values = this.#all().flatMap(({ method, route, counts: { byTime, sumMs } }) => {
      let sum = 0;
      const buckets = byTime.map((count, place) => {
        sum += count;
        const bound = boundsMs[place];
        const le = bound === undefined ? '+Inf' : bound / second;
        return { metricName: `${name}_bucket`, labels: { le, method, route }, value: sum };
      });
      const labels = { method, route };
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels, value: sumMs / second },
        { metricName: `${name}_count`, labels, value: sum },
      ];
    });
    return { ...(await this.#empty.get()), values };
  }

  /** The registry asks this one first. */
  getForPromString() {
    return this.get();
  }
}

/** Counts a request, when its response begins. */
export type CountRequest = (
  request: { readonly method: string; readonly route: string | undefined },
  response: { readonly status: number; readonly ms: number },
) => void;

const known = new Set(METHODS);

/**
 * Counts requests by method, route and class of status, and their durations. A request adds to four numbers; metrics are
 * made of these when they are shown. The labels are those of the routes there are, however requests are named. Rule:
 * FIT-142.
 */
export function requestCounts(registry: Registry): CountRequest {
  const byRoute = new Map<string, Map<string, RouteCount>>();
  const all = () =>
    [...byRoute].flatMap(([route, methods]) =>
      [...methods].map(([method, counts]): LabelledCount => ({ method, route, counts })),
    );
  const requests: Counter<Label> = new Counter({
    name: 'latchkey_http_requests_total',
    help: 'Requests, by method, route and class of the status',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
    collect: () => {
      requests.reset();
      for (const { method, route, counts } of all()) {
        for (const [place, status] of statusClasses.entries()) {
          const count = counts.byClass[place] ?? 0;
          if (count > 0) requests.inc({ method, route, status }, count);
        }
      }
    },
  });
  registry.registerMetric(new RequestDurations(all));

  function add(method: string, route: string): RouteCount {
    const methods = byRoute.get(route) ?? new Map<string, RouteCount>();
    byRoute.set(route, methods);
    const label = known.has(method) ? method : 'other';
    const counts = methods.get(label) ?? new RouteCount();
    methods.set(label, counts);
    return counts;
  }

  return ({ method, route = noRoute }, { status, ms }) => {
    const counts = byRoute.get(route)?.get(method) ?? add(method, route);
    counts.count(status, ms);
  };
}
