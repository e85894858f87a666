import type { Logger } from 'pino';
import { authenticator } from '../access/authenticator.ts';
import { lastUsed } from '../access/last-used.ts';
import { type PasswordCost, passwordHasher } from '../access/passwords.ts';
import { reauthorization } from '../access/reauthorization.ts';
import { scopedTokenReader } from '../access/scoped-tokens.ts';
import { appendAudit } from '../audit-log/audit-log.ts';
import { rejectionCounter } from '../audit-log/rejection-counter.ts';
import { type AfterResponse, afterResponse } from '../base/after-response.ts';
import { type Clock, second } from '../base/clock.ts';
import { ApiError, StartupError } from '../base/errors.ts';
import { idGenerator } from '../base/ids.ts';
import type { Config } from '../config/config.ts';
import type { LiveConfig } from '../config/live-config.ts';
import { type LiveConnector, liveConnector } from '../connector/live-connector.ts';
import type { Database } from '../db/database.ts';
import { holdDataDir, prepareDataDir } from '../db/files/data-dir.ts';
import { isOrganizationDeleted } from '../db/members/organization.ts';
import { migrate } from '../db/schema/migrate.ts';
import { levelFailureTime } from '../features/passwords/public.ts';
import { findServiceToken } from '../features/service-clients/public.ts';
import { findSession, findSessionAgain } from '../features/sessions/public.ts';
import { mailSettingsReader, oidcSettingsReader } from '../features/settings/public.ts';
import { findToken, findTokenAgain, storeLastUsed } from '../features/tokens/public.ts';
import { type App, createApp } from '../http/server/app.ts';
import { type Encryption, openEncryption } from '../keys/encryption.ts';
import { settleEncryptionKey } from '../keys/rotate-encryption.ts';
import { limits } from '../limits/limits.ts';
import { readQueue } from '../limits/read-queue.ts';
import { signInLimits } from '../limits/sign-in-limits.ts';
import { mailClientOf } from '../mail/mail-client.ts';
import { type MailPauses, usualPauses } from '../mail/mail-pauses.ts';
import { type MailService, openMailService } from '../mail/mail-service.ts';
import { createMetrics, type Metrics } from '../metrics/metrics.ts';
import { type LiveOidc, liveOidc } from '../oidc/live-oidc.ts';
import { openWebhookSender, type WebhookSender } from '../outbox/webhook-delivery/webhook-sender.ts';
import { routes } from '../routes.gen.ts';
import type { AllServices } from '../services.ts';
import { openEvents } from './compose-events.ts';
import { openAgents, openPictures, openStore } from './compose-late.ts';
import { limitCounts, openKeys, startUpkeep } from './compose-nodes.ts';

/** Below the ten seconds after which the process gives up. */
const closeMsMax = 9 * second;

interface RuntimeContext {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  /** The log is read on a terminal; default: no. */
  readonly isLogOnTerminal?: boolean;
  /** Cost of password hashes; default: the recommended one. */
  readonly passwordCost?: PasswordCost;
  /** Milliseconds that requests may wait to be read before they are rejected; default: that of the load gate. */
  readonly waitMsMax?: number;
  /** Before further attempts at mails; default: as described. Rules: FIT-22, FIT-23. */
  readonly mailPauses?: MailPauses;
}

/** A service that is composed and not yet listening. */
export interface Service {
  readonly app: App;
  readonly services: AllServices;
  /** Finishes requests in flight, writes pending data and closes the store. May be called twice. */
  close(): Promise<void>;
}

interface Outgoing {
  readonly afterResponse: AfterResponse;
  readonly oidc: LiveOidc;
  readonly mail: MailService;
  readonly webhooks: WebhookSender;
}

/** Opens the parts that contact other systems behind requests. */
function openOutgoing(
  { live, clock, log, mailPauses: pauses = usualPauses }: RuntimeContext,
  parts: { readonly db: Database; readonly encryption: Encryption; readonly metrics: Metrics },
): Outgoing {
  const behind = afterResponse(log);
  const reading = { config: () => live.current, ...parts };
  const settings = mailSettingsReader(reading);
  return {
    afterResponse: behind,
    oidc: liveOidc(oidcSettingsReader(reading), clock),
    mail: openMailService({
      clock,
      afterResponse: behind,
      metrics: parts.metrics,
      log,
      settings,
      pauses,
      client: () => mailClientOf(live.current),
    }),
    webhooks: openWebhookSender({ clock, networks: () => live.current.outboundNetworks }),
  };
}

/** Reloads the configuration for a request over the API; problems are logged. Rule: CONFIG-27. */
function reload({ live, log }: RuntimeContext): Config {
  try {
    return live.reload();
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    log.error({ reason: error.message }, 'the old configuration stays');
    // The reason names files, which must not be disclosed.
    throw new ApiError('configurationWrong', { params: { variable: error.variable ?? 'something' } });
  }
}

async function openServices(context: RuntimeContext, connector: LiveConnector): Promise<AllServices> {
  const { live, clock, passwordCost, waitMsMax } = context;
  const { dataDir, encryptionKey } = live.current;
  const db = await openStore(live.current, context.log);
  try {
    await migrate(db, clock);
    if (!encryptionKey) await settleEncryptionKey(db.read, dataDir);
    const encryption = openEncryption({ dataDir, key: encryptionKey });
    const metrics = createMetrics();
    const newId = idGenerator(clock);
    const keys = await openKeys({ ...context, db, encryption });
    const passwords = await passwordHasher(passwordCost, waitMsMax === undefined ? {} : { waitMsMax });
    await levelFailureTime(db.read, passwords);
    const limitParts = { isOn: () => live.current.rateLimit, clock, counts: limitCounts(db) };
    const services: AllServices = {
      ...openOutgoing(context, { db, encryption, metrics }),
      ...openEvents(context, { db, clock, newId, metrics }, () => services),
      mcp: openAgents({ endpoints: routes, services: () => services, log: context.log }),
      rejectionCounter: rejectionCounter(() => services),
      encryption,
      metrics,
      log: context.log,
      get config() {
        return live.current;
      },
      get connector() {
        return connector.current;
      },
      reloadConfig: () => reload(context),
      clock,
      db,
      newId,
      keys,
      passwords,
      tokenUses: lastUsed({ ...context, metrics, store: (uses) => storeLastUsed(services, uses) }),
      pictures: openPictures(),
      limits: { ...limits(limitParts), ...signInLimits(limitParts) },
      reads: readQueue(),
      backfills: readQueue(),
      recordOutcome: (outcome, work) => (outcome === 'webhookCall' ? db.sideTransaction(work) : db.transaction(work)),
      recordAttempt: (record) => db.transaction((tx) => appendAudit(tx, services, record)),
      reauthorize: reauthorization({
        clock,
        findToken: (read, id) => findTokenAgain(live.current, read, id),
        findSession: (read, id) => findSessionAgain({ config: live.current }, read, id),
      }),
    };
    return services;
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** Version for caches, which depend on the configuration too: another snapshot counts as a commit. */
function versionOf(db: Database, live: LiveConfig): Pick<Database, 'dataVersion' | 'refreshVersion'> {
  return { refreshVersion: () => db.refreshVersion(), dataVersion: () => db.dataVersion() + live.generation };
}

async function composeOn(services: AllServices, context: RuntimeContext): Promise<Service> {
  const { live, clock, log, waitMsMax, isLogOnTerminal } = context;
  const user = authenticator({
    db: versionOf(services.db, live),
    clock,
    displayPrefixes: () => live.current.displayPrefixes,
    find: [(hash) => findToken(services, hash), (hash) => findSession(services, hash)],
    onTokenUse: services.tokenUses.touch,
  });
  const service = scopedTokenReader({
    secret: () => live.current.scopedSharedSecret,
    clock,
    find: (hash) => findServiceToken(services, hash),
    isOrganizationDeleted: () => isOrganizationDeleted(services.db),
  });
  const app = await createApp({
    services,
    endpoints: routes,
    authenticate: { user, service },
    log,
    isLogOnTerminal,
    waitMsMax,
  });
  const stopUpkeep = await startUpkeep(services, live);
  live.onChange(({ logLevel }) => {
    log.level = logLevel;
  });
  const close = async () => {
    const begunMs = performance.now();
    stopUpkeep();
    await app.close();
    await services.mcp.close();
    await services.rejectionCounter
      .write()
      .catch((error: unknown) => log.error({ err: error }, 'rejected sign-ins were not recorded'));
    // A hanging mail server must not prevent writes after responses.
    const leftMs = () => Math.max(0, closeMsMax - (performance.now() - begunMs));
    await Promise.all([services.afterResponse.close(leftMs()), services.tokenUses.close()]);
    // After everything that may still write events.
    await services.relays.close(leftMs());
  };
  return { app, services, close };
}

/**
 * Composes a service out of its parts: opens the store, migrates it, opens the keys and builds the HTTP side. Throws
 * StartupError for a mistake of the operator.
 */
export async function compose(context: RuntimeContext): Promise<Service> {
  const { live, clock } = context;
  const { dataDir } = live.current;
  prepareDataDir(dataDir);
  const hold = holdDataDir(dataDir);
  const connector = liveConnector(live, clock);
  let services: AllServices | undefined;
  const release = async () => {
    await connector.close();
    await services?.mail.close();
    await services?.relays.close();
    await services?.db.close();
    hold.release();
  };
  try {
    services = await openServices(context, connector);
    const service = await composeOn(services, context);
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
