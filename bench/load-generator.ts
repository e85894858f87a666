// One run of load in a process of its own, so that it has a core to itself. Reads its orders (`LoadOrders`) from the variable
// `LOAD`, prints the result as one line of JSON, and exits with 1 and one line on stderr as soon as an answer isn't the
// expected one.
//
// Why not autocannon: it holds the result down. Both were measured on a machine of two cores against bare Fastify
// (32 connections, server and generator pinned to one core each, five alternating runs of 6 s, medians; other programs
// took a little of both cores):
//   autocannon 8.0.0   16,804 req/s   its own core 84 % busy (up to 92 %)   server process 91 % busy
//   this generator     19,573 req/s   its own core 67 % busy (up to 75 %)   server process 93 % busy
// With the machine to themselves, this generator keeps bare Fastify at 98 to 99 % of its core (27,000 to 33,000 req/s)
// with 64 to 66 % of its own. Bare Fastify is the ceiling that the budgets are ratios to, so a generator at its own limit
// flatters every other server. autocannon also reports latencies in whole milliseconds; the median here is about one.
import { readFileSync } from 'node:fs';
import { messageOf } from '../harness/command-line.ts';
import { percentile } from '../harness/statistics.ts';
import { waitSecondsOf } from './core-wait.ts';
import { KeepAliveConnection } from './keep-alive-connection.ts';
import { Pace } from './pace.ts';
import type { LoadResult } from './rows.ts';

const ticksPerSecond = 100;

/** What one run of load is. */
export interface LoadOrders {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST; without it, a GET is sent. */
  readonly payload?: string;
  /** In base64. */
  readonly expectedBody: string;
  readonly connections: number;
  /** Requests are sent at this rate; where it is null, each connection sends as soon as it was answered. */
  readonly perSecond: number | null;
  readonly leadInSeconds: number;
  readonly seconds: number;
  readonly serverPid: number;
}

/** Seconds of processor time that the process has used since it started, or null where there is no /proc. */
function cpuSecondsOf(pid: number): number | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  } catch {
    return null;
  }
}

/** A GET or, with a `payload`, a POST of it. */
function requestBytes({ host, port, path, headers, payload }: LoadOrders): Buffer {
  const length = payload === undefined ? {} : { 'content-length': Buffer.byteLength(payload) };
  const lines = Object.entries({ ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`);
  const first = `${payload === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1`;
  return Buffer.from(`${first}\r\nhost: ${host}:${port}\r\n${lines.join('')}\r\n${payload ?? ''}`, 'utf8');
}

/** Answers are counted between `start` and `end`; those of the lead-in and those after the end are not. */
class Window {
  readonly #latenciesMs: number[] = [];
  readonly #serverPid: number;
  #begun: ReturnType<Window['now']> | null = null;

  constructor(serverPid: number) {
    this.#serverPid = serverPid;
  }

  now() {
    const server = { cpuSeconds: cpuSecondsOf(this.#serverPid), waitSeconds: waitSecondsOf(this.#serverPid) };
    return { atMs: performance.now(), ownCpu: process.cpuUsage(), ...server };
  }

  start(): void {
    this.#begun = this.now();
  }

  add(latencyMs: number): void {
    if (this.#begun !== null) this.#latenciesMs.push(latencyMs);
  }

  end(): LoadResult {
    const begun = this.#begun ?? this.now();
    this.#begun = null;
    const ended = this.now();
    const seconds = (ended.atMs - begun.atMs) / 1_000;
    const { user, system } = process.cpuUsage(begun.ownCpu);
    const since = (field: 'cpuSeconds' | 'waitSeconds') => {
      const [before, after] = [begun[field], ended[field]];
      return before === null || after === null ? null : after - before;
    };
    const [used, waited] = [since('cpuSeconds'), since('waitSeconds')];
    const count = this.#latenciesMs.length;
    return {
      requestsPerSecond: count / seconds,
      p50Ms: percentile(this.#latenciesMs, 0.5),
      p99Ms: percentile(this.#latenciesMs, 0.99),
      serverCpuShare: used === null ? null : used / seconds,
      serverWaitShare: waited === null ? null : waited / seconds,
      serverCpuMicroseconds: used === null ? null : (used * 1e6) / count,
      generatorCpuShare: (user + system) / 1e6 / seconds,
    };
  }
}

function run(orders: LoadOrders): Promise<LoadResult> {
  const window = new Window(orders.serverPid);
  const pace = orders.perSecond === null ? null : new Pace(orders.perSecond);
  const connections: KeepAliveConnection[] = [];
  return new Promise<LoadResult>((resolve, reject) => {
    const options = {
      host: orders.host,
      port: orders.port,
      request: requestBytes(orders),
      expectedBody: Buffer.from(orders.expectedBody, 'base64'),
      onReady: (connection: KeepAliveConnection) => (pace === null ? connection.send() : pace.ready(connection)),
      onResponse: (latencyMs: number) => window.add(latencyMs),
      onBroken: reject,
    };
    for (let count = 0; count < orders.connections; count++) connections.push(new KeepAliveConnection(options));
    pace?.start();
    setTimeout(() => window.start(), orders.leadInSeconds * 1000);
    const late = () => (pace === null ? {} : { lateP99Ms: percentile(pace.latenessMs, 0.99) });
    setTimeout(() => resolve({ ...window.end(), ...late() }), (orders.leadInSeconds + orders.seconds) * 1000);
  }).finally(() => {
    pace?.end();
    for (const connection of connections) connection.end();
  });
}

try {
  const result = await run(JSON.parse(process.env['LOAD'] ?? '{}'));
  if (result.requestsPerSecond === 0) throw new Error('not one answer came');
  console.log(JSON.stringify(result));
  process.exit(0);
} catch (error) {
  console.error(messageOf(error));
  process.exit(1);
}
