import { Agent, request } from 'node:http';
import { median } from '../harness/statistics.ts';

const agent = new Agent({ keepAlive: true });

/** Sends one request to this machine; answers `{ status, headers }`, the status as text or what went wrong in its place. */
export function send({ port, path, method, headers }, body) {
  return new Promise((resolve) => {
    const failed = (error) => resolve({ status: error.message, headers: {} });
    const options = { agent, host: '127.0.0.1', port, path, method };
    const sent = request({ ...options, headers: { ...headers, 'content-length': body.length } }, (answer) => {
      answer.resume();
      answer.once('end', () => resolve({ status: String(answer.statusCode), headers: answer.headers }));
      answer.once('error', failed);
    });
    sent.once('error', failed);
    sent.end(body);
  });
}

/**
 * Acts at a fixed rate, whether or not what was begun earlier is done. When the process is told to end (SIGTERM) it waits
 * for what is still under way and prints one line of JSON: `{ perSecond, answers, medianMs }`, how often each answer came
 * and the median time of those that were `good`.
 * @param act is told how many were begun before it; answers a status or what went wrong
 */
export function actAtRate({ perSecond, good }, act) {
  const startedAt = performance.now();
  const pending = [];
  const answers = {};
  const goodMs = [];

  async function actOnce() {
    const sentAt = performance.now();
    const answer = await act(pending.length);
    answers[answer] = (answers[answer] ?? 0) + 1;
    if (answer === good) goodMs.push(performance.now() - sentAt);
  }

  // Counted from the start: a timer of 1/perSecond would fall behind on a machine that has other things to do.
  const timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * perSecond;
    while (pending.length < due) pending.push(actOnce());
  }, 10);

  process.once('SIGTERM', async () => {
    clearInterval(timer);
    const seconds = (performance.now() - startedAt) / 1000;
    await Promise.all(pending);
    const medianMs = goodMs.length === 0 ? null : median(goodMs);
    console.log(JSON.stringify({ perSecond: pending.length / seconds, answers, medianMs }));
    agent.destroy();
  });
}
