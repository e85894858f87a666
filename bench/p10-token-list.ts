import { setTimeout as sleep } from 'node:timers/promises';
import { startServer } from './latchkey.ts';
import { end } from './pinned.ts';
import { printedToken, seededStore } from './seeded-store.ts';
import { median, percentile } from '../harness/statistics.ts';
import { timedRequest } from './timed-request.ts';

const size = { users: 1_000, tokens: 100_000 };
const requests = 100;
const warmUp = 10;
const restMs = 400;

async function timePage(caller, page) {
  const path = `/personal-access-tokens/admin?limit=100&page=${page}`;
  for (let count = 0; count < warmUp; count++) await timedRequest(caller, { path });
  const times = [];
  for (let count = 0; count < requests; count++) {
    const { totalMs, body } = await timedRequest(caller, { path });
    times.push(totalMs);
    const listed = JSON.parse(body).data.length;
    if (listed !== 100) throw new Error(`page ${page} lists ${listed} tokens`);
  }
  const sorted = Float64Array.from(times).sort();
  return { p95Ms: percentile(sorted, 0.95), medianMs: median(times), longestMs: sorted.at(-1) };
}

/** P10: the administrator's list of 100,000 tokens, its first page and page 1,000, each 100 times. */
export async function measureTokenList({ tell }) {
  const dataDir = await seededStore(size, tell);
  const token = await printedToken(dataDir);
  const { child, ...server } = await startServer({ dataDir });
  const caller = { ...server, headers: { authorization: `Bearer ${token}` } };
  await sleep(restMs);
  const pages = {};
  for (const [part, page] of [
    ['first', 1],
    ['thousandth', 1_000],
  ]) {
    pages[part] = await timePage(caller, page);
    tell(`P10: page ${page}: p95 ${pages[part].p95Ms.toFixed(1)} ms, median ${pages[part].medianMs.toFixed(1)} ms`);
  }
  await end(child);
  return pages;
}
