import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '../harness/processes.ts';
import { until } from '../harness/waiting.ts';
import { Nats } from './brokers.ts';
import { type Call, Callers, tally, type Wanted } from './callers.ts';
import { compareMessages } from './history.ts';
import type { Outcome, RowOptions } from './rows.ts';
import { Service } from './service.ts';
import type { Store } from './stores.ts';

const stopMsMax = 10_000;
let made = 0;

function mixed(): Wanted {
  made += 1;
  const email = `late-${made}@example.com`;
  return made % 4 === 0
    ? { method: 'POST', path: '/users', body: { fullName: `Late ${made}`, email } }
    : { path: '/org' };
}

/** A service whose users are sent to a broker, and a token for it. */
interface Running {
  readonly service: Service;
  readonly store: Store;
  readonly broker: Nats;
  readonly token: string;
}

/** The calls around an end, and what is wrong with how they were answered. */
function callFaults(calls: readonly Call[], stoppedMs: number): readonly string[] {
  const bad = calls.filter(({ sentMs, status }) => sentMs < stoppedMs && !/^20[01]$/.test(status));
  const strange = calls.filter(({ status }) => !/^(20[01]|503|ECONNREFUSED|ECONNRESET)$/.test(status));
  return [
    ...(bad.length > 0 ? [`of those who asked before it: ${tally(bad)}`] : []),
    ...(strange.length > 0 ? [`of those who asked after it: ${tally(strange)}`] : []),
  ];
}

/** Ends the service by SIGTERM; how long that took, and what is wrong with how it ended. */
async function ending(service: Service) {
  const stoppedMs = performance.now();
  service.signal('SIGTERM');
  const { code, signal } = await service.program.ended;
  const tookMs = performance.now() - stoppedMs;
  const faults = code === 0 ? [] : [`it ended with ${code ?? signal}`];
  if (tookMs > stopMsMax) faults.push(`it took ${Math.round(tookMs)} ms to end`);
  return { stoppedMs, tookMs, faults };
}

/** What of the users that were acknowledged is not in the store, not sent, or not in the log. */
async function keptFaults({ service, store, broker }: Running, acknowledged: number): Promise<readonly string[]> {
  // Before the next process could send anything.
  const messages = await broker.stored('entity-events');
  await service.start();
  const events = await service.events();
  const users = await store.value(service.dataDir, 'SELECT count(*) FROM users');
  const { lost, invented, disordered } = compareMessages(messages, events);
  return [
    ...(events.length === users + 1 ? [] : [`${users} users are told of by ${events.length} events`]),
    ...(users > acknowledged ? [] : [`${acknowledged} users were acknowledged, ${users} are there`]),
    ...lost,
    ...invented,
    ...disordered,
  ];
}

/** Ends the service once while it is under load, and starts it again. */
async function stopOnce(running: Running): Promise<{ readonly tookMs: number; readonly faults: readonly string[] }> {
  const { service, store, token } = running;
  const callers = new Callers({ service, token });
  const lastUsedMs = () =>
    store.value(service.dataDir, 'SELECT coalesce(max(last_used_at), 0) FROM personal_access_tokens');
  // From here on it is not written for a minute, unless the process ends.
  const fromMs = Date.now();
  await callers.call({ path: '/org' });
  await until('the last use is written', async () => (await lastUsedMs()) >= fromMs);
  callers.take();
  const stop = callers.crowd(40, mixed);
  await sleep(600);
  const usedMs = Date.now();
  await sleep(150);
  const { stoppedMs, tookMs, faults } = await ending(service);
  await stop();
  const calls = callers.take();
  callers.close();
  const acknowledged = calls.filter(({ status }) => status === '201').length;
  const writtenMs = await lastUsedMs();
  if (writtenMs < usedMs) faults.push(`the last use is ${usedMs - writtenMs} ms older than it was`);
  return { tookMs, faults: [...faults, ...callFaults(calls, stoppedMs), ...(await keptFaults(running, acknowledged))] };
}

/** R7: SIGTERM under load; once a token was used, and once users were made, that is written and sent. */
export async function stopUnderLoad({ entry, short, store }: RowOptions): Promise<Outcome> {
  const broker = await Nats.begin();
  const dataDir = join(temporaryFolder(), 'data');
  const service = new Service({ entry, dataDir, env: { EVENTS_URL: broker.url, ...store.env } });
  await service.start();
  const running = { service, store, broker, token: await service.createOrganization() };
  const faults: string[] = [];
  const done: string[] = [];
  for (let time = 1; time <= (short ? 1 : 5); time += 1) {
    const one = await stopOnce(running);
    faults.push(...one.faults);
    done.push(`${Math.round(one.tookMs)} ms`);
  }
  await service.stop();
  await broker.close();
  return { faults, done: `${done.length} times, ended after ${done.join(', ')}` };
}
