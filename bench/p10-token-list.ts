import { setTimeout as sleep } from 'node:timers/promises';
import { median, percentile } from '../harness/statistics.ts';
import { startServer } from './latchkey.ts';
import type { Measuring } from './rows.ts';
import { printedToken, seededStore } from './seeded-store.ts';
import { type Caller, timedRequest } from './timed-request.ts';

const size = { users: 1_000, tokens: 100_000 };
const requests = 100;
const warmUp = 10;
const restMs = 400;

interface Page {
  readonly p95Ms: number;
  readonly medianMs: number;
  readonly longestMs: number;
}

/** What P10 measured. */
export interface Pages {
  readonly first: Page;
  readonly thousandth: Page;
}

async function timePage(caller: Caller, page: number, { tell }: Measuring): Promise<Page> {
  const path = `/personal-access-tokens/admin?limit=100&page=${page}`;
  for (let count = 0; count < warmUp; count++) await timedRequest(caller, { path });
  const times: number[] = [];
  for (let count = 0; count < requests; count++) {
    const { totalMs, body } = await timedRequest(caller, { path });
    times.push(totalMs);
    const listed = JSON.parse(body.toString()).data.length;
    if (listed !== 100) throw new Error(`page ${page} lists ${listed} tokens`);
  }
  const [p95Ms, medianMs] = [percentile(times, 0.95), median(times)];
  tell(`P10: page ${page}: p95 ${p95Ms.toFixed(1)} ms, median ${medianMs.toFixed(1)} ms`);
  return { p95Ms, medianMs, longestMs: Math.max(...times) };
}

/** P10: the administrator's list of 100,000 tokens, its first page and page 1,000, each 100 times. */
export async function measureTokenList(options: Measuring): Promise<Pages> {
  const dataDir = await seededStore(size, options.tell);
  const token = await printedToken(dataDir);
  const server = await startServer({ dataDir });
  const caller = { ...server, headers: { authorization: `Bearer ${token}` } };
  await sleep(restMs);
  const first = await timePage(caller, 1, options);
  const thousandth = await timePage(caller, 1_000, options);
  await server.program.end();
  return { first, thousandth };
}
