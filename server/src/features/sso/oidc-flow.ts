import { minute, second } from '../../base/clock.ts';
import type { Config } from '../../config/config.ts';
import type { OidcFlow, OidcSettings } from '../../oidc/oidc.ts';

/** Time limit for the visit at the provider. */
export const flowMs = 10 * minute;

const cookieName = 'latchkey_oidc';
/** Below the path of BASE_URL, which is the one that browsers see. Rule: FIT-9. */
const cookiePath = (basePath: string) => `${basePath}/api/v1/userAccount/oidc`;

/** Reason why a user comes back without a ticket, for the sign-in page. */
export type OidcProblem =
  | 'access_denied'
  | 'expired'
  | 'email_not_verified'
  | 'no_account'
  | 'not_configured'
  | 'failed';

/** The cookie that the browser keeps while its owner is at the provider, readable by no script. */
export function flowCookie(value: string, { baseUrl, basePath }: Pick<Config, 'baseUrl' | 'basePath'>): string {
  const secure = baseUrl.startsWith('https:') ? '; Secure' : '';
  const maxAge = value === '' ? 0 : flowMs / second;
  return `${cookieName}=${value}; Path=${cookiePath(basePath)}; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`;
}

/** Returns the cookie of the browser; `null` for none. */
export function readFlowCookie(header: string | undefined): string | null {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  const own = pairs.find((pair) => pair.startsWith(`${cookieName}=`));
  return own === undefined ? null : own.slice(cookieName.length + 1);
}

/** What a visit to the provider is for, and when it began, in milliseconds since 1970. */
interface Begun {
  readonly signInId: string;
  readonly begunMs: number;
}

/** What the cookie of a browser holds, or why it does not belong to this return. */
type ReadFlow =
  | { readonly flow: OidcFlow & Begun; readonly problem: null }
  | { readonly flow: null; readonly problem: string };

const noFlow = (problem: string): ReadFlow => ({ flow: null, problem });

/**
 * Returns the content of the cookie, if it belongs to this return: same provider, and the state that was sent there.
 * @param cookie of the browser; `null`: it sent none
 * @param kept its content; `null`: it is not ours, or expired
 */
export function flowOf(
  kept: Readonly<Record<string, unknown>> | null,
  {
    cookie,
    settings,
    state,
  }: { readonly cookie: string | null; readonly settings: OidcSettings; readonly state: unknown },
): ReadFlow {
  if (cookie === null) return noFlow('the browser sent no cookie of a sign-in');
  if (kept?.['tokenType'] !== 'oidc-flow') return noFlow('the cookie of the sign-in is not valid, or expired');
  if (kept['state'] !== state) return noFlow('"state" is that of another sign-in');
  if (kept['issuer'] !== settings.issuer || kept['clientId'] !== settings.clientId) {
    return noFlow('the provider was changed during the sign-in');
  }
  const [nonce, verifier, signInId] = [String(kept['nonce']), String(kept['verifier']), String(kept['signInId'])];
  // An earlier release kept the second.
  const begunMs = Number(kept['begunMs'] ?? Number(kept['iat']) * second);
  return { flow: { state: String(state), nonce, verifier, signInId, begunMs }, problem: null };
}

/** Returns the address that the provider sent the browser to, whatever name the browser used for this server. */
export function returnUrl(redirectUri: string, query: Readonly<Record<string, unknown>>): URL {
  const url = new URL(redirectUri);
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, String(value));
  return url;
}

/** The sign-in page, with what came of it in the part of the address that no server is sent. */
export function signInPage(frontendUrl: string, outcome: Readonly<Record<string, string>>): string {
  return `${frontendUrl}/sign-in#${new URLSearchParams(outcome).toString()}`;
}

/**
 * Returns the headers that redirect a browser to the sign-in page.
 * @param isOver deletes the cookie of the flow; otherwise it may belong to another tab, which is still at the provider
 */
export function backToSignIn(
  config: Pick<Config, 'baseUrl' | 'basePath' | 'frontendUrl'>,
  outcome: Readonly<Record<string, string>>,
  isOver: boolean,
): Readonly<Record<string, string>> {
  const location = signInPage(config.frontendUrl, outcome);
  return isOver ? { location, 'set-cookie': flowCookie('', config) } : { location };
}
