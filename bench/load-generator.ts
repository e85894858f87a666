// One run of load in a process of its own, so that it has a core to itself. Reads its orders from the variable `LOAD`:
// { host, port, path, headers, payload, expectedBody (base64), connections, perSecond, leadInSeconds, seconds, serverPid }, prints
// the result as one line of JSON, and exits with 1 and one line on stderr as soon as an answer isn't the expected one.
// Without `perSecond` each connection sends as soon as it was answered; with it, requests are sent at that rate.
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
import { waitSecondsOf } from './core-wait.ts';
import { KeepAliveConnection } from './keep-alive-connection.ts';
import { Pace } from './pace.ts';
import { percentile } from '../harness/statistics.ts';

const ticksPerSecond = 100;

/** Seconds of processor time that the process has used since it started, or null where there is no /proc. */
function cpuSecondsOf(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop().split(' ');
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  } catch {
    return null;
  }
}

/** A GET or, with a `payload`, a POST of it. */
function requestBytes({ host, port, path, headers, payload }) {
  const length = payload === undefined ? {} : { 'content-length': Buffer.byteLength(payload) };
  const lines = Object.entries({ ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`);
  const first = `${payload === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1`;
  return Buffer.from(`${first}\r\nhost: ${host}:${port}\r\n${lines.join('')}\r\n${payload ?? ''}`, 'utf8');
}

/** Answers are counted between `start` and `end`; those of the lead-in and those after the end are not. */
class Window {
  latenciesMs = [];
  #counting = false;

  constructor(serverPid) {
    this.serverPid = serverPid;
  }

  start() {
    this.#counting = true;
    this.startedAt = performance.now();
    this.ownCpu = process.cpuUsage();
    this.serverCpuSeconds = cpuSecondsOf(this.serverPid);
    this.serverWaitSeconds = waitSecondsOf(this.serverPid);
  }

  add(latencyMs) {
    if (this.#counting) this.latenciesMs.push(latencyMs);
  }

  end() {
    this.#counting = false;
    const seconds = (performance.now() - this.startedAt) / 1000;
    const { user, system } = process.cpuUsage(this.ownCpu);
    const serverCpuSeconds = cpuSecondsOf(this.serverPid);
    const serverUsed = serverCpuSeconds === null ? null : serverCpuSeconds - this.serverCpuSeconds;
    const serverWaitSeconds = waitSecondsOf(this.serverPid);
    const sorted = Float64Array.from(this.latenciesMs).sort();
    return {
      requestsPerSecond: sorted.length / seconds,
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
      serverCpuShare: serverUsed === null ? null : serverUsed / seconds,
      serverWaitShare: serverWaitSeconds === null ? null : (serverWaitSeconds - this.serverWaitSeconds) / seconds,
      serverCpuMicroseconds: serverUsed === null ? null : (serverUsed * 1e6) / sorted.length,
      generatorCpuShare: (user + system) / 1e6 / seconds,
    };
  }
}

function run(orders) {
  const window = new Window(orders.serverPid);
  const pace = orders.perSecond ? new Pace(orders.perSecond) : null;
  const connections = [];
  return new Promise((resolve, reject) => {
    const options = {
      host: orders.host,
      port: orders.port,
      request: requestBytes(orders),
      expectedBody: Buffer.from(orders.expectedBody, 'base64'),
      onReady: (connection) => (pace === null ? connection.send() : pace.ready(connection)),
      onAnswer: (latencyMs) => window.add(latencyMs),
      onBroken: reject,
    };
    for (let count = 0; count < orders.connections; count++) connections.push(new KeepAliveConnection(options));
    pace?.start();
    setTimeout(() => window.start(), orders.leadInSeconds * 1000);
    const late = () =>
      pace === null ? {} : { lateP99Ms: percentile(Float64Array.from(pace.latenessMs).sort(), 0.99) };
    setTimeout(() => resolve({ ...window.end(), ...late() }), (orders.leadInSeconds + orders.seconds) * 1000);
  }).finally(() => {
    pace?.end();
    for (const connection of connections) connection.end();
  });
}

try {
  const result = await run(JSON.parse(process.env.LOAD));
  if (result.requestsPerSecond === 0) throw new Error('not one answer came');
  console.log(JSON.stringify(result));
  process.exit(0);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
