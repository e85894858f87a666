import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Json } from '../harness/api-client.ts';
import { temporaryFolder } from '../harness/processes.ts';
import { until } from '../harness/waiting.ts';
import type { Outcome, RowOptions, SuiteRow } from './rows.ts';
import { type LoggedEvent, Service } from './service.ts';
import { auditFaults, told, Witness } from './witness.ts';

/** Loaded into the service, and so no TypeScript. */
const preload = fileURLToPath(new URL('./shifted-clock.mjs', import.meta.url));
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** How long headers may take, and how much later the connection is closed at the latest. */
const headersMs = { least: 9_500, most: 13_000 };

/** A service whose wall clock can be set. */
async function startWithClock({ entry, store }: Pick<RowOptions, 'entry' | 'store'>) {
  const folder = temporaryFolder();
  const file = join(folder, 'clock.json');
  writeFileSync(file, '{"shiftMs":0}');
  const env = { ...store.env, FAULTS_CLOCK: file, NODE_OPTIONS: `--import=${preload}` };
  const service = new Service({ entry, dataDir: join(folder, 'data'), env });
  await service.start();
  const witness = new Witness({ service, token: await service.createOrganization() });
  /** Sets the clock, and waits until the service has read that. */
  const set = async (wanted: { readonly shiftMs?: number; readonly frozenMs?: number }) => {
    const text = JSON.stringify(wanted);
    writeFileSync(file, text);
    service.signal('SIGUSR2');
    await until('the clock is set', () => readFileSync(`${file}.read`, 'utf8') === text);
  };
  return { service, witness, set };
}

async function statusOf(service: Service, token: string): Promise<string> {
  const { status, body } = await service.call('GET', '/org', { token });
  return status === 200 ? 'good' : body.error.code;
}

/** What is said of tokens, by their names here. */
type ByName = Readonly<Record<string, string>>;

async function tokenFaults(service: Service, expected: ByName, tokens: ByName): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const [name, wanted] of Object.entries(expected)) {
    const found = await statusOf(service, tokens[name] ?? '');
    if (found !== wanted) faults.push(`the ${name} is ${found}, not ${wanted}`);
  }
  return faults;
}

/** The events are numbered without a gap, and each user's stand in the order in which they were answered. */
function orderFaults(events: readonly LoggedEvent[]): readonly string[] {
  return events.flatMap(({ sequence }, place) =>
    sequence === (events[0]?.sequence ?? 0) + place ? [] : [`event ${sequence} stands at ${place + 1}`],
  );
}

/** D7: the wall clock jumps; changes are made before, meanwhile and after it was put right again. */
async function jumps(
  options: RowOptions,
  { shiftMs, meanwhile }: { readonly shiftMs: number; readonly meanwhile: ByName },
): Promise<Outcome> {
  const { service, witness, set } = await startWithClock(options);
  const month = await service.issueToken(witness.token, { name: 'for a month', expiryDays: 30 });
  const tokens = { session: await service.newSession(), month, 'token for ever': witness.token };
  await witness.run(10);
  await set({ shiftMs });
  const faults = [...(await tokenFaults(service, meanwhile, tokens))];
  await witness.run(20);
  // Who signs in now has a session by this clock.
  faults.push(...(await tokenFaults(service, { fresh: 'good' }, { fresh: await service.newSession() })));
  await set({ shiftMs: 0 });
  faults.push(...(await tokenFaults(service, { session: 'good', month: 'good', 'token for ever': 'good' }, tokens)));
  await witness.run(10);
  faults.push(...(await witness.check()), ...orderFaults(await service.events()));
  await service.stop();
  const unsound = auditFaults(options.entry, service.dataDir, options.store.env);
  return { faults: [...faults, ...unsound], done: told(witness) };
}

/** Milliseconds until the service closes a connection whose headers never end. */
async function slowHeadersMs({ url }: Service): Promise<number> {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  const startedMs = performance.now();
  socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow: ');
  socket.resume();
  await once(socket, 'close');
  return performance.now() - startedMs;
}

/** D7: the wall clock stands still: time-outs go on, and nothing is numbered or named twice. */
async function standsStill({ entry, short, store }: RowOptions): Promise<Outcome> {
  const { service, witness, set } = await startWithClock({ entry, store });
  await set({ frozenMs: Date.now() });
  const slow = short ? Promise.resolve(headersMs.least) : slowHeadersMs(service);
  await witness.run(60);
  // The use of a token is written by a timer.
  await until('the last use is written', async () => {
    const { body } = await service.ask('GET', '/personal-access-tokens', { token: witness.token });
    return body.tokens.some(({ lastUsedAt }: Json) => lastUsedAt !== null);
  });
  const tookMs = await slow;
  const faults = [...(await witness.check())];
  if (tookMs < headersMs.least || tookMs > headersMs.most) faults.push(`slow headers were cut off after ${tookMs} ms`);
  const { body: users } = await service.ask('GET', '/users', { token: witness.token });
  for (const field of ['_id', 'slug']) {
    if (new Set(users.map((user: Json) => user[field])).size !== users.length)
      faults.push(`two users have the same ${field}`);
  }
  faults.push(...orderFaults(await service.events()));
  await set({ shiftMs: 0 });
  await sleep(10);
  await witness.run(5);
  await service.stop();
  return {
    faults: [...faults, ...auditFaults(entry, service.dataDir, store.env)],
    done: `${told(witness)}; slow headers ${Math.round(tookMs / 100) / 10} s`,
  };
}

const always = { 'token for ever': 'good' };

/** The rows of the clock suite, in order. */
export const clockRows: readonly SuiteRow[] = [
  {
    id: 'D7',
    what: 'the clock goes back an hour',
    expected: 'all goes on, in order',
    run: (options) => jumps(options, { shiftMs: -hourMs, meanwhile: { ...always, session: 'good', month: 'good' } }),
  },
  {
    id: 'D7',
    what: 'the clock goes forward a day',
    expected: 'sessions end by it',
    run: (options) =>
      jumps(options, {
        shiftMs: dayMs + hourMs,
        meanwhile: { ...always, session: 'SESSION_EXPIRED', month: 'good' },
      }),
  },
  {
    id: 'D7',
    what: 'the clock goes forward 31 days',
    expected: 'tokens end by it',
    run: (options) =>
      jumps(options, {
        shiftMs: 31 * dayMs,
        meanwhile: { ...always, session: 'SESSION_EXPIRED', month: 'TOKEN_EXPIRED' },
      }),
  },
  { id: 'D7', what: 'the clock stands still', expected: 'time-outs go on', run: standsStill },
];
