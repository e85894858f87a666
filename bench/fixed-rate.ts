import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { median } from '../harness/statistics.ts';
import type { WorkDone } from './rows.ts';

const agent = new Agent({ keepAlive: true });

interface Request {
  readonly port: number;
  readonly path: string;
  readonly method: string;
  readonly headers: OutgoingHttpHeaders;
}

interface Response {
  /** As text, or what went wrong. */
  readonly status: string;
  readonly headers: IncomingHttpHeaders;
}

/** Sends one request to this machine. Never rejects. */
export function send({ port, path, method, headers }: Request, body: Buffer): Promise<Response> {
  return new Promise((resolve) => {
    const failed = (error: Error) => resolve({ status: error.message, headers: {} });
    const options = { agent, host: '127.0.0.1', port, path, method };
    const sent = request({ ...options, headers: { ...headers, 'content-length': body.length } }, (response) => {
      response.resume();
      response.once('end', () => resolve({ status: String(response.statusCode), headers: response.headers }));
      response.once('error', failed);
    });
    sent.once('error', failed);
    sent.end(body);
  });
}

interface Rate {
  readonly perSecond: number;
  /** The answer of success. */
  readonly good: string;
}

/**
 * Acts at a fixed rate, whether or not what was begun earlier is done. When the process is told to end (SIGTERM) it waits
 * for what is still under way and prints one line of JSON, a `WorkDone`.
 * @param act is given how many were begun before it; returns a status or what went wrong
 */
export function actAtRate({ perSecond, good }: Rate, act: (place: number) => Promise<string>): void {
  const startedAt = performance.now();
  const pending: Promise<void>[] = [];
  const responses: Record<string, number> = {};
  const goodMs: number[] = [];

  async function actOnce(): Promise<void> {
    const sentAt = performance.now();
    const response = await act(pending.length);
    responses[response] = (responses[response] ?? 0) + 1;
    if (response === good) goodMs.push(performance.now() - sentAt);
  }

  // Counted from the start: a timer of 1/perSecond would fall behind on a machine that has other things to do.
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * perSecond;
    while (pending.length < due) pending.push(actOnce());
  }, 10);

  const end = async () => {
    clearInterval(timer);
    const seconds = (performance.now() - startedAt) / 1000;
    await Promise.all(pending);
    const medianMs = goodMs.length === 0 ? null : median(goodMs);
    const done: WorkDone = { perSecond: pending.length / seconds, answers: responses, medianMs };
    console.log(JSON.stringify(done));
    agent.destroy();
  };
  process.once('SIGTERM', () => void end());
}
