import type { Logger } from 'pino';
import { authenticator } from './access/authenticator.ts';
import { callerConfirmation } from './access/confirmation.ts';
import { type Encryption, openEncryption } from './access/encryption.ts';
import { openSigningKeys } from './access/keys.ts';
import { lastUsed } from './access/last-used.ts';
import { limits } from './access/limits.ts';
import { passwordHasher } from './access/passwords.ts';
import { scopedTokenReader } from './access/scoped-tokens.ts';
import { type Background, background } from './background.ts';
import { type Clock, hour, minute, second } from './clock.ts';
import type { Config } from './config/config.ts';
import { openConnector } from './connector/open-connector.ts';
import { holdDataDir, prepareDataDir } from './db/data-dir.ts';
import type { Database } from './db/database.ts';
import { migrate } from './db/migrate.ts';
import { openSqlite } from './db/sqlite.ts';
import { pruneLinks } from './features/links/contract.ts';
import { findSession, findSessionAgain, pruneSessions } from './features/sessions/contract.ts';
import { mailSettingsReader } from './features/settings/contract.ts';
import { findToken, findTokenAgain, pruneTokens, storeLastUsed } from './features/tokens/contract.ts';
import { type App, createApp } from './http/app.ts';
import { idGenerator } from './ids.ts';
import { pictureCompressor } from './images/picture-compressor.ts';
import { type MailService, openMailService } from './mail/mail-service.ts';
import { createMetrics, type Metrics } from './metrics/metrics.ts';
import { routes } from './routes.gen.ts';
import type { Services } from './services.ts';

const pruneEveryMs = hour;
const firstPruneMs = minute;
/** Below the ten seconds after which the process gives up. */
const closeMsMax = 9 * second;

interface Surroundings {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A service that is composed and not yet listening. */
export interface Service {
  readonly app: App;
  readonly services: Services;
  /** Finishes requests in flight, writes what is still to be written and closes the store. May be called twice. */
  close(): Promise<void>;
}

interface Outgoing {
  readonly background: Background;
  readonly mail: MailService;
}

/** What leaves this process behind requests. */
function openOutgoing(
  { config, clock, log }: Surroundings,
  parts: { readonly db: Database; readonly encryption: Encryption; readonly metrics: Metrics },
): Outgoing {
  const behind = background(log);
  const settings = mailSettingsReader({ config, ...parts });
  return {
    background: behind,
    mail: openMailService({ clock, background: behind, metrics: parts.metrics, log, settings }),
  };
}

async function openServices(surroundings: Surroundings): Promise<Services> {
  const { config, clock } = surroundings;
  const { dataDir } = config;
  const db = openSqlite(dataDir);
  try {
    await migrate(db, clock);
    const encryption = openEncryption({ dataDir, key: config.encryptionKey });
    const metrics = createMetrics();
    return {
      ...openOutgoing(surroundings, { db, encryption, metrics }),
      encryption,
      metrics,
      config,
      clock,
      db,
      newId: idGenerator(clock),
      keys: await openSigningKeys({ dataDir, clock, sharedSecret: config.jwtSharedSecret }),
      passwords: await passwordHasher(),
      pictures: pictureCompressor(),
      limits: limits({ on: config.rateLimit, clock }),
      confirm: callerConfirmation({
        clock,
        findToken: (read, id) => findTokenAgain(config, read, id),
        findSession: findSessionAgain,
      }),
      connector: config.connectorUrl === null ? null : openConnector({ url: config.connectorUrl, clock }),
    };
  } catch (error) {
    await db.close();
    throw error;
  }
}

/**
 * What ended long ago is removed soon after the start and then now and then; what fails is tried again the next time.
 * @returns what stops it
 */
function startPruning(services: Services, log: Logger): () => void {
  const prune = async () => {
    try {
      const removed = {
        tokens: await pruneTokens(services),
        sessions: await pruneSessions(services),
        links: await pruneLinks(services),
      };
      if (removed.tokens + removed.sessions + removed.links > 0) log.info(removed, 'removed what ended long ago');
    } catch (error) {
      log.warn({ err: error }, 'what ended long ago could not be removed; it will be tried again');
    }
  };
  const first = setTimeout(() => void prune(), firstPruneMs).unref();
  const further = setInterval(() => void prune(), pruneEveryMs).unref();
  return () => {
    clearTimeout(first);
    clearInterval(further);
  };
}

async function composeOn(services: Services, { config, clock, log }: Surroundings): Promise<Service> {
  const store = (uses: ReadonlyMap<string, number>) => storeLastUsed(services, uses);
  const uses = lastUsed({ clock, metrics: services.metrics, log, store });
  const person = authenticator({
    db: services.db,
    clock,
    displayPrefixes: () => config.displayPrefixes,
    find: [(hash) => findToken(services, hash), (hash) => findSession(services, hash)],
    onTokenUse: uses.touch,
  });
  const service = scopedTokenReader({ secret: config.scopedSharedSecret, clock });
  const app = await createApp({ services, endpoints: routes, authenticate: { person, service }, log });
  const stopPruning = startPruning(services, log);
  const close = async () => {
    const begunMs = performance.now();
    stopPruning();
    await app.close();
    // A mail server that hangs must not cost what is written behind requests.
    const leftMs = Math.max(0, closeMsMax - (performance.now() - begunMs));
    await Promise.all([services.background.close(leftMs), uses.close()]);
  };
  return { app, services, close };
}

/**
 * Composes a service out of its parts: opens the store, migrates it, opens the keys and builds the HTTP side. Throws
 * StartupError for a mistake of the operator.
 */
export async function compose(surroundings: Surroundings): Promise<Service> {
  const { dataDir } = surroundings.config;
  prepareDataDir(dataDir);
  const hold = holdDataDir(dataDir);
  let services: Services | undefined;
  const release = async () => {
    await services?.connector?.close();
    await services?.mail.close();
    await services?.db.close();
    hold.release();
  };
  try {
    services = await openServices(surroundings);
    const service = await composeOn(services, surroundings);
    let closing: Promise<void> | undefined;
    const closeAll = async () => {
      try {
        await service.close();
      } finally {
        await release();
      }
    };
    const close = () => {
      closing ??= closeAll();
      return closing;
    };
    return { ...service, close };
  } catch (error) {
    await release();
    throw error;
  }
}
