import type { Logger } from 'pino';
import { second, systemClock } from './clock.ts';
import { compose, type Service } from './compose.ts';
import { loadConfig } from './config/load-config.ts';
import { StartupError } from './errors.ts';
import { createLog } from './log.ts';

const drainMs = 10 * second;

/** Says where the service is and what comes next: to a person in plain words, to a program as a line of the log. */
function announce(
  log: Logger,
  { address, baseUrl, isNew }: { address: string; baseUrl: string; isNew: boolean },
): void {
  const next = isNew
    ? `Next: create your organization with POST ${baseUrl}/api/v1/org, as the README shows`
    : `Next: sign in with POST ${baseUrl}/api/v1/userAccount/initAuth, as the README shows`;
  if (process.stdout.isTTY) {
    process.stdout.write(`Latchkey listens on ${address}\nDocumentation: ${baseUrl}/docs\n${next}\n`);
    return;
  }
  log.info({ address, docs: `${baseUrl}/docs` }, `Latchkey listens on ${address}. ${next}`);
}

function stopOnSignals(service: Service, log: Logger): void {
  const stop = () => {
    // What is still running after this long is given up; the store is safe at any moment.
    setTimeout(() => process.exit(1), drainMs).unref();
    service.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.fatal({ err: error }, 'could not stop in order');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

async function start(): Promise<void> {
  // Whatever the service writes is its owner's alone.
  process.umask(0o077);
  const config = loadConfig(process.env);
  const log = createLog(config, process.stdout);
  const service = await compose({ config, clock: systemClock, log });
  try {
    const address = await service.app.listen({ host: config.host, port: config.port });
    stopOnSignals(service, log);
    const { exists } = (await service.app.inject('/api/v1/org/exists')).json<{ exists: boolean }>();
    announce(log, { address, baseUrl: config.baseUrl, isNew: !exists });
  } catch (error) {
    await service.close();
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code !== 'EADDRINUSE' && code !== 'EACCES' && code !== 'EADDRNOTAVAIL') throw error;
    throw new StartupError(
      `HOST ${config.host} and PORT ${config.port} cannot be listened on (${code}): choose others`,
    );
  }
}

start().catch((error: unknown) => {
  process.stderr.write(error instanceof StartupError ? `latchkey: ${error.message}\n` : `latchkey: ${String(error)}\n`);
  process.exitCode = 1;
});
