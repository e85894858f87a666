import type { Logger } from 'pino';
import type { LastUsed } from './access/last-used.ts';
import type { PasswordHasher } from './access/passwords.ts';
import type { Reauthorize } from './access/reauthorization.ts';
import type { AuditRecord } from './audit-log/audit-log.ts';
import type { RejectionCounter } from './audit-log/rejection-counter.ts';
import type { AfterResponse } from './base/after-response.ts';
import type { Clock } from './base/clock.ts';
import type { NewId } from './base/ids.ts';
import type { Config } from './config/config.ts';
import type { Connector } from './connector/connector.ts';
import type { Database, ReadableDatabase, Tx } from './db/database.ts';
import type { PictureCompressor } from './images/picture-compressor.ts';
import type { Encryption } from './keys/encryption.ts';
import type { SigningKeys } from './keys/keys.ts';
import type { Limits } from './limits/limits.ts';
import type { ReadQueue } from './limits/read-queue.ts';
import type { SignInLimits } from './limits/sign-in-limits.ts';
import type { MailService } from './mail/mail-service.ts';
import type { McpService } from './mcp/agents.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { LiveOidc } from './oidc/live-oidc.ts';
import type { LogWatch } from './outbox/log-watch.ts';
import type { Relays } from './outbox/relay/relays.ts';
import type { WebhookSender } from './outbox/webhook-delivery/webhook-sender.ts';

/** What came of sending mails, or of calling a webhook: it has happened, whatever has become of the caller. */
type Outcome = 'delivery' | 'webhookCall';

/**
 * What handlers work with. A handler takes what it needs and nothing else reaches it. Nothing here opens a transaction:
 * that is `write`, which each handler is given by its own policy.
 */
export interface Services {
  /** The present configuration: a snapshot, which is exchanged whole. */
  readonly config: Config;
  /** Reloads the configuration; throws `configurationWrong`, and then nothing changes. Rules: CONFIG-26, CONFIG-27. */
  readonly reloadConfig: () => Config;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly db: ReadableDatabase;
  /** Records an outcome in a transaction of its own, in which `work` changes nothing else. */
  readonly recordOutcome: <T>(outcome: Outcome, work: (tx: Tx) => Promise<T>) => Promise<T>;
  /** Adds the audit record of an attempt that was refused, or that changes nothing, in a transaction of its own. */
  readonly recordAttempt: (record: AuditRecord) => Promise<void>;
  readonly keys: SigningKeys;
  readonly passwords: PasswordHasher;
  /** Noted where a token counts for someone: at each request, and where a service asks about it. */
  readonly tokenUses: LastUsed;
  readonly encryption: Encryption;
  readonly mail: MailService;
  readonly oidc: LiveOidc;
  /** Tells that there are new events. */
  readonly eventWatch: LogWatch;
  readonly relays: Relays;
  readonly webhooks: WebhookSender;
  readonly mcp: McpService;
  readonly afterResponse: AfterResponse;
  readonly rejectionCounter: RejectionCounter;
  readonly pictures: PictureCompressor;
  readonly limits: Limits & SignInLimits;
  /** Where reads that cost wait for their turn. */
  readonly reads: ReadQueue;
  /** Where event streams that are far behind wait for their turn. */
  readonly backfills: ReadQueue;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** The connector backend; `null` where the built-in team directory stands in for it. */
  readonly connector: Connector | null;
}

/**
 * The services with what opens transactions that no caller is asked for in: for upkeep, and for the endpoints whose policy
 * says by what they write instead (`writesBy`).
 */
export interface AllServices extends Services {
  readonly db: Database;
  readonly reauthorize: Reauthorize;
}
