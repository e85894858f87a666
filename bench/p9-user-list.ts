import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../harness/statistics.ts';
import { startServer } from './latchkey.ts';
import type { Measuring } from './rows.ts';
import { printedToken, seededStore } from './seeded-store.ts';
import { type Caller, type Timed, timedRequest } from './timed-request.ts';

const users = 100_000;
const requests = 5;
const otherRequests = 3;
/** Between two requests, so that each finds the server idle; the first wait also lets it finish its start. */
const restMs = 400;

/** A further list, medians. */
interface OtherList {
  readonly path: string;
  readonly firstByteMs: number;
  readonly totalMs: number;
  readonly bytes: number;
  /** How many rows there are on all pages; null where it is not said. */
  readonly matches: number | null;
}

/** What P9 measured, each for every request. */
export interface WholeList {
  readonly firstByteMs: readonly number[];
  readonly totalMs: readonly number[];
  /** Over what the idle server has. */
  readonly memoryMb: readonly number[];
  readonly idleMb: number;
  readonly bytes: number;
  readonly others: readonly OtherList[];
}

type Listing = Caller & { readonly pid: number };

function kilobytesOf(pid: number, field: string): number {
  const found = new RegExp(`^${field}:\\s*(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  if (found === null) throw new Error(`/proc/${pid}/status has no ${field}`);
  return Number(found[1]);
}

/** From now on `VmHWM` is the most memory since now, which no sampling could miss. */
function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
}

/** The most memory that the whole list costs, over what the server had before it was asked for the first time. */
async function wholeList(server: Listing): Promise<Omit<WholeList, 'others'>> {
  const idleKilobytes = kilobytesOf(server.pid, 'VmRSS');
  const [firstByteMs, totalMs, memoryMb]: [number[], number[], number[]] = [[], [], []];
  let bytes = 0;
  for (let count = 0; count < requests; count++) {
    await sleep(restMs);
    forgetPeak(server.pid);
    const response = await timedRequest(server, { path: '/users' });
    memoryMb.push((kilobytesOf(server.pid, 'VmHWM') - idleKilobytes) / 1024);
    firstByteMs.push(response.firstByteMs);
    totalMs.push(response.totalMs);
    bytes = response.body.length;
    const listed = JSON.parse(response.body.toString()).length;
    if (listed <= users) throw new Error(`GET /users listed ${listed} users, not ${users} and an administrator`);
  }
  return { firstByteMs, totalMs, memoryMb, idleMb: idleKilobytes / 1024, bytes };
}

async function otherPaths(server: Caller): Promise<readonly string[]> {
  const first = await timedRequest(server, { path: '/users?page=1' });
  const { totalPages } = JSON.parse(first.body.toString()).pagination;
  const pages = ['fullName', 'email', 'createdAt'].flatMap((sortBy) =>
    [1, totalPages].map((page) => `/users?page=${page}&sortBy=${sortBy}`),
  );
  const searches = ['a', '.77777@', 'nobody-is-called-this'].map((text) => `/users?search=${text}`);
  return [...pages, ...searches, '/users/fetch/with-groups'];
}

async function timeOthers(server: Caller): Promise<readonly OtherList[]> {
  const others: OtherList[] = [];
  for (const path of await otherPaths(server)) {
    const responses: Timed[] = [];
    for (let count = 0; count < otherRequests; count++) responses.push(await timedRequest(server, { path }));
    const body = responses[0]?.body.toString() ?? '{}';
    const matches = JSON.parse(body).pagination?.totalCount ?? null;
    const of = (field: 'firstByteMs' | 'totalMs') => median(responses.map((response) => response[field]));
    others.push({
      path,
      firstByteMs: of('firstByteMs'),
      totalMs: of('totalMs'),
      bytes: responses[0]?.body.length ?? 0,
      matches,
    });
  }
  return others;
}

/**
 * P9, time and memory: `GET /users` with 100,000 users, on a server that does nothing else. Milliseconds and megabytes of
 * each request, and `others`: further lists of the same store, for orientation.
 */
export async function measureUserList({ tell }: Measuring): Promise<WholeList> {
  const dataDir = await seededStore({ users, tokens: 1_000 }, tell);
  // A sign-in before would leave the server with the memory of a password hash, and the list would look small.
  const token = await printedToken(dataDir);
  tell(`P9: GET /users with ${users} users`);
  const server = await startServer({ dataDir });
  const caller = { ...server, headers: { authorization: `Bearer ${token}` } };
  await sleep(restMs);
  const whole = await wholeList(caller);
  const others = await timeOthers(caller);
  await server.program.end();
  return { ...whole, others };
}
