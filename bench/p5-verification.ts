// Row P5: processor time of one verification of a personal access token, in process. Run alone, it prints the result
// as one line of JSON; `npm run bench` runs it in a process of its own.
import { ApiClient, type Json } from '../harness/api-client.ts';
import { messageOf } from '../harness/command-line.ts';
import { endEverything, temporaryFolder } from '../harness/processes.ts';
import { median } from '../harness/statistics.ts';
import { createOrganization } from './latchkey.ts';

const warmUpIterations = 20_000;
const iterations = 200_000;
const rows = 5;

type Verify = () => unknown;

const fromServer = (module: string): Promise<Json> =>
  import(new URL(`../dist/server/src/${module}.js`, import.meta.url).href);

/**
 * THE ADAPTER: the only part that knows the server's modules. It composes a service on an empty store, makes an
 * organization with one personal access token, and wires verification as the server's own composition does. Returns
 *   verify()  verifies the Authorization header of that token as a request would, and returns the principal
 *             (or a promise of it); throws when the token is refused
 *   close()   closes the service and removes its store
 */
async function loadVerification(): Promise<{ verify: Verify; close(): Promise<void> }> {
  const [
    { compose },
    { loadConfig },
    { liveConfig },
    { createLog },
    { systemClock },
    { authenticator },
    { lastUsed },
    tokens,
    sessions,
  ] = await Promise.all(
    ['process/compose', 'config/load-config', 'config/live-config', 'process/log', 'base/clock']
      .concat(['access/authenticator', 'access/last-used', 'features/tokens/public', 'features/sessions/public'])
      .map(fromServer),
  );
  const environment = { DATA_DIR: temporaryFolder(), RATE_LIMIT: 'off', LOG_LEVEL: 'silent' };
  const live = liveConfig((running: Json) => loadConfig(environment, running));
  const log = await createLog(live.current, process.stdout);
  const { app, services, close } = await compose({ live, clock: systemClock, log });
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const { token } = await createOrganization(new ApiClient(address));
  const store = (uses: Json) => tokens.storeLastUsed(services, uses);
  const authenticate = authenticator({
    db: services.db,
    clock: services.clock,
    displayPrefixes: () => live.current.displayPrefixes,
    find: [(hash: Json) => tokens.findToken(services, hash), (hash: Json) => sessions.findSession(services, hash)],
    onTokenUse: lastUsed({ clock: services.clock, metrics: services.metrics, log, store }).touch,
  });
  const header = `Bearer ${token}`;
  return { verify: () => authenticate(header), close };
}

async function cpuMicrosecondsEach(call: Verify): Promise<number> {
  const before = process.cpuUsage();
  for (let count = 0; count < iterations; count++) await call();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / iterations;
}

async function warmUp(call: Verify): Promise<void> {
  for (let count = 0; count < warmUpIterations; count++) await call();
}

/**
 * Processor time of one `verify()` in microseconds over the same loop with a call that only hands back the principal,
 * which is what a route without authentication has: the median of five batches of 200,000 calls, and all five.
 */
async function measureVerification(verify: Verify) {
  const principal = await verify();
  if (!principal) throw new Error('the verification returned no principal');
  const handBack = async () => principal;
  await warmUp(verify);
  await warmUp(handBack);
  const each: number[] = [];
  for (let batch = 0; batch < rows; batch++) {
    const without = await cpuMicrosecondsEach(handBack);
    const using = await cpuMicrosecondsEach(verify);
    each.push(using - without);
  }
  return { microseconds: median(each), batches: each };
}

async function main() {
  const { verify, close } = await loadVerification();
  try {
    console.log(JSON.stringify(await measureVerification(verify)));
  } finally {
    await close();
  }
}

try {
  await main();
} catch (error) {
  console.error(messageOf(error));
  process.exitCode = 1;
} finally {
  await endEverything();
}
