import type { Logger } from 'pino';
import { pruneAudit } from '../audit-log/remove-audit.ts';
import type { Clock } from '../base/clock.ts';
import type { LiveConfig } from '../config/live-config.ts';
import { watchReloads } from '../config/reload-watch.ts';
import type { Database } from '../db/database.ts';
import { claimJob } from '../db/job-store.ts';
import { pruneCodes } from '../features/codes/public.ts';
import { pruneTickets } from '../features/identities/public.ts';
import { pruneNetworks } from '../features/known-networks/public.ts';
import { pruneLinks } from '../features/links/public.ts';
import { pruneServiceTokens } from '../features/service-clients/public.ts';
import { pruneSessions } from '../features/sessions/public.ts';
import { pruneSignIns } from '../features/sign-in/public.ts';
import { pruneTokens } from '../features/tokens/public.ts';
import { pruneAttempts, pruneWebhooks } from '../features/webhooks/public.ts';
import { pruneIdempotencyKeys } from '../http/idempotency.ts';
import type { Encryption } from '../keys/encryption.ts';
import { keyFile } from '../keys/key-place.ts';
import { openSigningKeys, type SigningKeys } from '../keys/keys.ts';
import { keyPlaceOf } from '../keys/store-key-place.ts';
import { countsInMemory, type LimitCounts } from '../limits/limit-counts.ts';
import { countsInStore, pruneLimits } from '../limits/limit-sharing.ts';
import { allowanceOf } from '../limits/limits.ts';
import { pruneEvents } from '../outbox/relay/prune-events.ts';
import type { AllServices } from '../services.ts';
import { pruneEveryMs, startPruning } from './pruning.ts';

interface Node {
  readonly db: Database;
  readonly encryption: Encryption;
  readonly clock: Clock;
  readonly live: LiveConfig;
  readonly log: Logger;
}

/**
 * Opens the signing keys: of the data directory, or those that all nodes of a shared store have in common. Throws
 * StartupError for a node whose ENCRYPTION_KEY is not that of the others. Rules: AUTH-34, NODE-7.
 */
export async function openKeys({ db, encryption, clock, live, log }: Node): Promise<SigningKeys> {
  const { jwtSharedSecret: sharedSecret, encryptionKey, dataDir } = live.current;
  if (!db.isShared) return openSigningKeys({ place: keyFile(dataDir), clock, sharedSecret });
  const place = keyPlaceOf({ db, dataDir, encryption, clock });
  const own = await openSigningKeys({ place, clock, sharedSecret: null });
  if (encryptionKey === null) {
    log.warn('ENCRYPTION_KEY is not set: other nodes need the key in the DATA_DIR of this one as their ENCRYPTION_KEY');
  }
  // A node that signs with a shared secret has opened these only to check that it can read what others encrypt.
  return sharedSecret === null ? own : openSigningKeys({ place, clock, sharedSecret });
}

/** Returns the storage of rate limit counts. Rule: NODE-4. */
export function limitCounts(db: Database): LimitCounts {
  return db.isShared ? countsInStore(db, allowanceOf) : countsInMemory();
}

/**
 * Starts periodic jobs: by one node for all, or by each for itself. Rules: NODE-5, NODE-6.
 * @returns a function that stops them
 */
export async function startUpkeep(services: AllServices, live: LiveConfig): Promise<() => void> {
  const { db, clock, log } = services;
  const removals = {
    tokens: () => pruneTokens(services),
    sessions: () => pruneSessions(services),
    links: () => pruneLinks(services),
    serviceTokens: () => pruneServiceTokens(services),
    tickets: () => pruneTickets(services),
    signIns: () => pruneSignIns(services),
    networks: () => pruneNetworks(services),
    codes: () => pruneCodes(services),
    events: () => pruneEvents(services),
    audit: () => pruneAudit(services),
    webhooks: () => pruneWebhooks(services),
    webhookAttempts: () => pruneAttempts(services),
    idempotencyKeys: () => pruneIdempotencyKeys(services),
    limits: () => pruneLimits(db, clock.now()),
  };
  if (!db.isShared) return startPruning(removals, log);
  const stopPruning = startPruning(removals, log, () =>
    claimJob(db, 'pruning', { nowMs: clock.now(), everyMs: pruneEveryMs }),
  );
  const stopWatch = await watchReloads({ db, live, log });
  return () => {
    stopPruning();
    stopWatch();
  };
}
