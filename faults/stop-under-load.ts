import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Nats, startBroker } from './brokers.ts';
import { Callers, tally } from './callers.ts';
import { until } from './kills.ts';
import { compareMessages } from './history.ts';
import { temporaryFolder } from './processes.ts';
import { Service } from './service.ts';

const stopMsMax = 10_000;
let made = 0;

function mixed() {
  made += 1;
  const email = `late-${made}@example.com`;
  return made % 4 === 0 ? { method: 'POST', path: '/users', body: { fullName: `Late ${made}`, email } } : { path: '/org' };
}

/** R7: SIGTERM while everybody asks; once a token was used, and once users were made, that is written and sent. */
export async function stopUnderLoad({ entry, short, store }) {
  const broker = await startBroker(Nats);
  const dataDir = join(temporaryFolder(), 'data');
  const service = new Service({ entry, dataDir, env: { EVENTS_URL: broker.url, ...store.env } });
  const faults = [];
  const done = [];
  await service.start();
  const token = await service.found();
  for (let time = 1; time <= (short ? 1 : 5); time += 1) {
    const callers = new Callers({ service, token });
    const lastUsedMs = () =>
      store.value(dataDir, 'SELECT coalesce(max(last_used_at), 0) FROM personal_access_tokens');
    // From here on it is not written for a minute, unless the process ends.
    const fromMs = Date.now();
    await callers.call({ path: '/org' });
    await until('the last use is written', async () => (await lastUsedMs()) >= fromMs);
    callers.take();
    const stop = callers.crowd(40, mixed);
    await sleep(600);
    const usedMs = Date.now();
    await sleep(150);
    const stoppedMs = performance.now();
    service.signal('SIGTERM');
    const { code, signal } = await service.child.ended;
    const tookMs = performance.now() - stoppedMs;
    await stop();
    const calls = callers.take();
    callers.close();
    if (code !== 0) faults.push(`it ended with ${code ?? signal}`);
    if (tookMs > stopMsMax) faults.push(`it took ${Math.round(tookMs)} ms to end`);
    const before = calls.filter(({ sentMs }) => sentMs < stoppedMs);
    const bad = before.filter(({ status }) => !/^20[01]$/.test(status));
    if (bad.length > 0) faults.push(`of those who asked before it: ${tally(bad)}`);
    const strange = calls.filter(({ status }) => !/^(20[01]|503|ECONNREFUSED|ECONNRESET)$/.test(status));
    if (strange.length > 0) faults.push(`of those who asked after it: ${tally(strange)}`);
    const acknowledged = calls.filter(({ status }) => status === '201').length;
    const writtenMs = await lastUsedMs();
    if (writtenMs < usedMs) faults.push(`the last use is ${usedMs - writtenMs} ms older than it was`);
    // Before the next process could send anything.
    const messages = await broker.messages('entity-events');
    await service.start();
    const events = await service.events();
    const users = await store.value(dataDir, 'SELECT count(*) FROM users');
    if (events.length !== users + 1) faults.push(`${users} users are told of by ${events.length} events`);
    if (users <= acknowledged) faults.push(`${acknowledged} users were acknowledged, ${users} are there`);
    const { lost, invented, disordered } = compareMessages(messages, events);
    faults.push(...lost, ...invented, ...disordered);
    done.push(`${Math.round(tookMs)} ms`);
  }
  await service.stop();
  await broker.close();
  return { faults, done: `${done.length} times, ended after ${done.join(', ')}` };
}
