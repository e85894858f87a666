import type { Logger } from 'pino';
import { second, systemClock } from '../base/clock.ts';
import { StartupError } from '../base/errors.ts';
import { type LiveConfig, liveConfig } from '../config/live-config.ts';
import { loadConfig } from '../config/load-config.ts';
import { misspeltVariables } from '../config/misspelt.ts';
import { writeLastStart } from '../db/files/last-start.ts';
import { selectOrganizationExists } from '../db/members/organization.ts';
import { undurableSettings } from '../db/postgres/postgres-durability.ts';
import { openMetricsListener } from '../metrics/metrics-listener.ts';
import { compose, type Service } from './compose.ts';
import { createLog } from './log.ts';
import { lowerPoolPriority } from './pool-priority.ts';

/** Connections that wait to be taken in. Beyond it they are dropped, and clients try again seconds later without a word. */
const backlog = 4_096;
const drainMs = 10 * second;

/** Prints the address of the service and the next step: as text on a terminal, as a log line otherwise. */
function announce(
  log: Logger,
  { address, baseUrl, metrics, isNew }: { address: string; baseUrl: string; metrics: string | null; isNew: boolean },
): void {
  const next = isNew
    ? `Next: create your organization: ./latchkey org create, or POST ${baseUrl}/api/v1/org, as the README shows`
    : `Next: sign in with POST ${baseUrl}/api/v1/userAccount/initAuth, as the README shows`;
  if (process.stdout.isTTY) {
    process.stdout.write(`Latchkey listens on ${address}\nDocumentation: ${baseUrl}/docs\n${next}\n`);
    return;
  }
  log.info({ address, docs: `${baseUrl}/docs`, metrics }, `Latchkey listens on ${address}. ${next}`);
}

function stopOnSignals(service: Pick<Service, 'close'>, log: Logger): void {
  const stop = () => {
    // Work that still runs after this time is abandoned; the store is consistent at any time.
    setTimeout(() => process.exit(1), drainMs).unref();
    service.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.fatal({ err: error }, 'could not stop in order');
        process.exit(1);
      },
    );
  };
  // A terminal and the npm above us may each send the same signal: what has begun is not begun again, nor cut short.
  let isStopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (!isStopping) stop();
      isStopping = true;
    });
  }
}

/** Reloads the configuration; a wrong one is logged and changes nothing. Rules: CONFIG-26, CONFIG-27. */
function reloadOnSignal(live: LiveConfig, log: Logger): void {
  try {
    live.reload();
    log.info('configuration reloaded');
  } catch (error) {
    log.error({ reason: error instanceof Error ? error.message : String(error) }, 'the old configuration stays');
  }
}

/** Why the service cannot listen and what to do about it, in one line; `null` for any other error. */
function listenProblem(error: unknown, { host, port }: { host: string; port: number }): string | null {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) return null;
  const { code, syscall } = error;
  const anotherHost = 'set HOST to an address of this machine, for example HOST=127.0.0.1';
  if (syscall === 'getaddrinfo') return `HOST ${host} cannot be found (${String(code)}): ${anotherHost}`;
  if (syscall !== 'listen') return null;
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is in use by another program: set PORT to another, for example PORT=${port === 65_535 ? 3000 : port + 1} npm start`;
    case 'EACCES':
      return `Port ${port} needs more rights than this user has: set PORT to another, for example PORT=3000 npm start`;
    case 'EADDRNOTAVAIL':
      return `HOST ${host} is no address of this machine: ${anotherHost}`;
    default:
      return `HOST ${host} and PORT ${port} cannot be listened on (${String(code)}): choose others`;
  }
}

/**
 * Runs the server in this process until a signal stops it. Throws StartupError for a mistake of the operator.
 * @param environment the variables of the process
 */
export async function serve(environment: Readonly<Record<string, string | undefined>>): Promise<void> {
  // Files of the service are accessible to their owner only.
  process.umask(0o077);
  await lowerPoolPriority(environment['UV_THREADPOOL_SIZE']);
  const live = liveConfig((running) => loadConfig(environment, running));
  const config = live.current;
  // The reader of the log may go away; the service goes on.
  process.stdout.on('error', () => {});
  const log = await createLog(config, process.stdout);
  for (const { given, meant } of misspeltVariables(environment)) {
    log.warn(`the variable ${given} has no effect: did you mean ${meant}?`);
  }
  // From here on: a signal must not end a service that is still starting.
  process.on('SIGHUP', () => reloadOnSignal(live, log));
  const service = await compose({ live, clock: systemClock, log, isLogOnTerminal: process.stdout.isTTY });
  try {
    const { db } = service.services;
    const settings = db.isShared ? await undurableSettings(db.read) : [];
    const address = await service.app.listen({ host: config.host, port: config.port, backlog });
    const shown = await openMetricsListener({
      port: config.metrics === 'off' ? 0 : config.metricsPort,
      isOn: () => live.current.metrics !== 'off',
      metrics: service.services.metrics,
      log,
    });
    stopOnSignals({ close: () => Promise.all([shown.close(), service.close()]).then(() => {}) }, log);
    writeLastStart(config);
    const exists = await selectOrganizationExists(db.read);
    announce(log, { address, baseUrl: config.baseUrl, metrics: shown.address, isNew: !exists });
    if (process.getuid?.() === 0) log.warn('the server runs as root: run it as a user of its own that owns DATA_DIR');
    if (settings.length > 0) log.warn({ settings }, 'PostgreSQL may lose what it acknowledges: these are off');
  } catch (error) {
    await service.close();
    const problem = listenProblem(error, config);
    throw problem === null ? error : new StartupError(problem);
  }
}
