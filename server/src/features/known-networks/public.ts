import { isIP } from 'node:net';
import { day } from '../../base/clock.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { networkOf } from '../../limits/limits.ts';
import type { SignInAttempt } from '../../limits/sign-in-limits.ts';
import type { AllServices, Services } from '../../services.ts';
import {
  deleteNetworks,
  deleteOldNetworks,
  selectIsKnown,
  selectIsNetworkOf,
  upsertNetwork,
} from './known-network-store.ts';

/** Time for which a network stays known after a sign-in from it. Rule: AUTH-70. */
const knownMs = 90 * day;

/**
 * Returns whether the account with an address signed in from a network during the last 90 days. The same work for an
 * address that no account has. Rule: AUTH-70.
 * @param address of the caller
 */
export function isKnownNetwork(
  { db, clock }: Pick<Services, 'db' | 'clock'>,
  email: string,
  address: string,
): Promise<boolean> {
  return selectIsKnown(db.read, { email, network: networkOf(address), sinceMs: clock.now() - knownMs });
}

/**
 * Returns the network that what is done for a user counts for: the caller's own where the user signed in from it during the
 * last 90 days, else an empty text, by which all strangers count together. Rules: AUTH-51, AUTH-71, PASSWORD-8.
 */
export async function countedNetwork(
  read: Reader,
  { clock }: Pick<Services, 'clock'>,
  { userId, address }: { readonly userId: string; readonly address: string },
): Promise<string> {
  const network = networkOf(address);
  return (await selectIsNetworkOf(read, { userId, network, sinceMs: clock.now() - knownMs })) ? network : '';
}

/** Notes that a user proved from this address who they are. Rule: AUTH-70. */
export async function rememberNetwork(
  tx: Tx,
  { clock }: Pick<Services, 'clock'>,
  { userId, address }: { readonly userId: string; readonly address: string },
): Promise<void> {
  // The address of a caller who has hung up is not known.
  if (isIP(address) !== 0) await upsertNetwork(tx, { userId, network: networkOf(address), nowMs: clock.now() });
}

/** Forgets from where a user signed in. */
export async function forgetNetworks(tx: Tx, userId: string): Promise<void> {
  await deleteNetworks(tx, userId);
}

/** Forgets networks that no one signed in from for 90 days, in batches; returns how many. */
export function pruneNetworks({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  const beforeMs = clock.now() - knownMs;
  return removeInBatches(() => db.transaction((tx) => deleteOldNetworks(tx, beforeMs, batchRows)));
}

/**
 * Counts a try to sign in from an address, as failed until it succeeds. Throws `signInBlocked`. Rules: AUTH-43, AUTH-70.
 * @param method by which it is tried; tickets of single sign-on are too long to be guessed
 */
export function trySignIn(
  services: Pick<Services, 'db' | 'clock' | 'limits'>,
  { email, network, method }: { readonly email: string; readonly network: string; readonly method: string },
): Promise<SignInAttempt> {
  const isKnown = () => isKnownNetwork(services, email, network);
  return services.limits.trySignIn({ email, network, isKnown, isUnguessable: method === 'oidc' });
}
