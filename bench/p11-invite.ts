import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { collect, freePort } from '../harness/processes.ts';
import { until } from '../harness/waiting.ts';
import { waitSecondsOf } from './core-wait.ts';
import { createOrganization, startServer } from './latchkey.ts';
import { startNode } from './pinned.ts';
import type { Measuring } from './rows.ts';
import { type Caller, timedRequest } from './timed-request.ts';

const mailServer = fileURLToPath(new URL('./slow-mail-server.ts', import.meta.url));
const addresses = 1_000;
const mailMs = 20;
const invitations = 3;
/** Between two requests of the caller that looks how the others fare: shorter than any delay that matters. */
const pauseMs = 2;
const restMs = 500;

/** What the mail server saw. */
interface Mails {
  readonly mails: number;
  readonly addresses: number;
  /** Connections at once. */
  readonly openMost: number;
}

/** What P11 measured, each for every invitation. */
export interface Invited {
  readonly seconds: readonly number[];
  /** The longest that another client waited meanwhile. */
  readonly longestMs: readonly number[];
  /** For which part of the time the service or the mail server was ready and had no core. */
  readonly waitShares: readonly number[];
  readonly mails: Mails;
}

type Asking = Caller & { readonly path: string };

async function startMailServer() {
  const port = await freePort();
  const program = startNode([mailServer], {
    core: 'generator',
    env: { MAIL_SERVER: JSON.stringify({ port, mailMs }) },
  });
  const output = collect(program.stdout);
  const isListening = until('the mail server listens', () => program.said().includes('listening'));
  const hasEnded = program.ended.then(() => {
    throw new Error('the mail server ended at its start');
  });
  await Promise.race([isListening, hasEnded]);
  hasEnded.catch(() => {});
  return {
    pid: program.pid,
    url: `smtp://127.0.0.1:${port}`,
    end: async (): Promise<Mails> => {
      await program.end();
      return JSON.parse(output());
    },
  };
}

/** Requests of another client, one after another, until `isOver`; how long each took, in milliseconds. */
async function askMeanwhile(caller: Asking, isOver: () => boolean): Promise<readonly number[]> {
  const tookMs: number[] = [];
  const asking = { ...caller, agent: new Agent({ keepAlive: true }) };
  while (!isOver()) {
    tookMs.push((await timedRequest(asking, { path: caller.path })).totalMs);
    await sleep(pauseMs);
  }
  asking.agent.destroy();
  return tookMs;
}

async function invite(caller: Asking, round: number) {
  const emails = Array.from({ length: addresses }, (_, place) => `person-${round}-${place}@example.com`);
  let isOver = false;
  const meanwhile = askMeanwhile(caller, () => isOver);
  // Thrown below, once the invitation is over.
  meanwhile.catch(() => {});
  try {
    const { totalMs } = await timedRequest(caller, { method: 'POST', path: '/users/bulk/invite', json: { emails } });
    return { totalMs, meanwhile };
  } finally {
    isOver = true;
    await meanwhile;
  }
}

/**
 * P11: an invitation of 1,000 addresses, on a mail server that takes 20 ms a mail, each time of 1,000 others.
 */
export async function measureInvite({ tell }: Measuring): Promise<Invited> {
  const mail = await startMailServer();
  const server = await startServer({ env: { SMTP_URL: mail.url } });
  const { userId, token } = await createOrganization(server.client, ['user:invite', 'user:read']);
  const caller = { ...server, path: `/users/${userId}`, headers: { authorization: `Bearer ${token}` } };
  const pids = [server.pid, mail.pid];
  const [seconds, longestMs, waitShares]: [number[], number[], number[]] = [[], [], []];
  for (let round = 1; round <= invitations; round++) {
    await sleep(restMs);
    const waitedBefore = pids.map(waitSecondsOf);
    const { totalMs, meanwhile } = await invite(caller, round);
    const waited = pids.map((pid, place) => Number(waitSecondsOf(pid)) - Number(waitedBefore[place]));
    waitShares.push(Math.max(...waited) / (totalMs / 1000));
    seconds.push(totalMs / 1000);
    longestMs.push(Math.max(...(await meanwhile)));
    tell(`P11: invitation ${round} of ${invitations}  ${(totalMs / 1000).toFixed(2)} s for ${addresses} addresses`);
  }
  await server.program.end();
  const mails = await mail.end();
  const expected = addresses * invitations;
  if (mails.mails !== expected || mails.addresses !== expected) {
    throw new Error(`${mails.mails} mails came to ${mails.addresses} of ${expected} addresses`);
  }
  return { seconds, longestMs, waitShares, mails };
}
