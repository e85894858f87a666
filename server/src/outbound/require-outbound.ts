import { refuseInput } from '../base/errors.ts';
import { addressCheck, isForbiddenHost } from './address-guard.ts';

/** Throws `invalidInput` for a destination of an administrator that could never be connected to. Rule: CONFIG-40. */
export function requireOutbound(
  field: string,
  { protocol, hostname }: { readonly protocol: string; readonly hostname: string },
  networks: readonly string[],
): void {
  if (!isForbiddenHost(hostname, addressCheck(protocol, networks))) return;
  throw refuseInput({ field, message: 'must lead to a public address, or one in OUTBOUND_NETWORKS' });
}
