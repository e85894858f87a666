import type { Origin } from '../base/origin.ts';
import { selectMailTarget } from '../db/members/mail-targets.ts';
import type { Services } from '../services.ts';
import { passwordChangedMail, tokenCreatedMail } from './notice-emails.ts';
import { sendNotice } from './notices.ts';

/** Mails the owner of an account that its password was changed. Rule: SESSION-11. */
export function notifyOfNewPassword(
  services: Services,
  change: { readonly userId: string; readonly revokedTokens: boolean; readonly origin: Origin },
): void {
  const { userId, revokedTokens, origin } = change;
  const happened = { at: services.clock.now(), network: origin.network, revokedTokens };
  sendNotice(services, 'password changed', {
    to: (read) => selectMailTarget(read, userId),
    email: (reader) => passwordChangedMail(reader, happened),
  });
}

/** Scopes that act as an administrator. */
const adminScopes = new Set(['org:admin', 'token:admin']);

/** A token that was just created. */
interface CreatedToken {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly createdAt: number;
  /** `null`: never. */
  readonly expiresAt: number | null;
}

/** Mails the owner of a new token that never expires or that has rights of an administrator. Rule: SESSION-11. */
export function notifyOfToken(
  services: Services,
  { name, ...token }: CreatedToken,
  to: { readonly userId: string; readonly origin: Origin },
): void {
  const [never, scopes] = [token.expiresAt === null, token.scopes.filter((scope) => adminScopes.has(scope))];
  if (!never && scopes.length === 0) return;
  const created = { at: token.createdAt, network: to.origin.network, name, never, adminScopes: scopes };
  sendNotice(services, 'token created', {
    to: (read) => selectMailTarget(read, to.userId),
    email: (reader) => tokenCreatedMail(reader, created),
  });
}
