import { second, systemClock } from '../../../server/src/base/clock.ts';
import { connectionText } from '../../../server/src/base/connection-error.ts';
import type { Config } from '../../../server/src/config/config.ts';
import type { Database } from '../../../server/src/db/database.ts';
import { mailSettingsReader, oidcSettingsReader } from '../../../server/src/features/settings/public.ts';
import type { Encryption } from '../../../server/src/keys/encryption.ts';
import { checkMailServer } from '../../../server/src/mail/check-mail-server.ts';
import { mailClientOf } from '../../../server/src/mail/mail-client.ts';
import { oidcRedirectUri } from '../../../server/src/oidc/oidc.ts';
import { openOidc } from '../../../server/src/oidc/open-oidc.ts';
import { hiddenReason } from '../../../server/src/outbound/address-guard.ts';
import { checkBroker as connectToBroker } from '../../../server/src/outbox/brokers/broker.ts';
import { brokerPlace } from '../../../server/src/outbox/brokers/broker-address.ts';
import { presentKey } from '../present-key.ts';
import { type Finding, failed, fine, messageOf, skipped, warning } from './check.ts';

const waitMs = 5 * second;

/** Subject of the checks. */
export interface Subject {
  readonly config: Config;
  /** `null` where there is none that can be read. */
  readonly db: Database | null;
}

type SettingReader<T> = typeof mailSettingsReader extends (parts: infer P) => unknown
  ? (parts: P) => () => Promise<T | null>
  : never;

/** Returns a stored setting; `unreadable` with the present key; `null`: none. */
async function stored<T>({ config, db }: Subject, reader: SettingReader<T>): Promise<T | 'unreadable' | null> {
  if (db === null) return null;
  let isUnreadable = false;
  const encryption: Pick<Encryption, 'decrypt'> = {
    decrypt: async (purpose, content) => {
      const text = (await presentKey(config)?.decrypt(purpose, content)) ?? null;
      isUnreadable = text === null;
      return text;
    },
  };
  const value = await reader({ config: () => config, db, encryption })();
  return isUnreadable ? 'unreadable' : value;
}

const unreadable = (what: string): Finding =>
  failed(
    `The stored settings of ${what} cannot be decrypted with the present encryption key`,
    'Restore the ENCRYPTION_KEY, or the file encryption-key, that they were encrypted with; or store them again',
  );

/** Checks that the mail server accepts a connection and the login; sends nothing. Rule: CLI-21. */
export async function checkMail(subject: Subject): Promise<Finding> {
  const { config } = subject;
  const from = config.mailFrom ?? { name: null, address: 'no-reply' };
  const configured = config.mailServer && { ...config.mailServer, from };
  const server = configured ?? (await stored(subject, mailSettingsReader));
  if (server === 'unreadable') return unreadable('the mail server');
  if (server === null) return skipped('No mail server is configured: invitations and links are handed over by hand');
  const place = `${server.host}:${server.port} (${server.security})`;
  const problem = await checkMailServer(server, { waitMs, client: mailClientOf(config) });
  const isSignedIn = server.login !== null || server.oauth2 !== undefined;
  if (problem === null) return fine(`${place} takes ${isSignedIn ? 'our sign-in' : 'a connection'}`);
  const cure = 'Correct SMTP_URL or the stored settings (address, security, sign-in), or the mail server';
  return failed(`${place} does not work: ${problem}`, cure);
}

/** Checks the connection to the broker. Rule: CLI-21. */
export async function checkBroker({ config }: Subject): Promise<Finding> {
  const { eventsUrl } = config;
  if (eventsUrl === null) return skipped('No broker is configured: events are in the log, and go to webhooks');
  const kind = brokerPlace(eventsUrl);
  try {
    await connectToBroker({ url: eventsUrl });
    return fine(`The broker of EVENTS_URL (${kind}) takes our connection`);
  } catch (error) {
    const cure = 'Start the broker, or correct EVENTS_URL; events wait in the log meanwhile';
    return failed(`The broker of EVENTS_URL (${kind}) does not: ${messageOf(error)}`, cure);
  }
}

/** Checks that the provider of single sign-on serves its metadata, and accepts the client secret. Rules: CLI-21, FIT-3. */
export async function checkSignOn(subject: Subject): Promise<Finding> {
  const settings = subject.config.oidc ?? (await stored(subject, oidcSettingsReader));
  if (settings === 'unreadable') return unreadable('single sign-on');
  if (settings === null) return skipped('No provider of single sign-on is configured');
  try {
    const client = openOidc(settings, { clock: systemClock, timeoutSeconds: waitMs / second });
    const { unprovedBecause } = await client.checkSecret(oidcRedirectUri(subject.config));
    const described = `${settings.issuer} describes itself as it should`;
    if (unprovedBecause === null) return fine(`${described}, and accepts the client secret`);
    return fine(`${described}; whether it accepts the client secret could not be proved`);
  } catch (error) {
    const cure = 'Correct OIDC_ISSUER or the stored settings, or the provider; other sign-in methods still work';
    return failed(`${settings.issuer} cannot be used: ${hiddenReason(error) ?? messageOf(error)}`, cure);
  }
}

/** Checks that the connector backend responds at all; it gets no credential. Rule: CLI-21. */
export async function checkConnector({ config: { connectorUrl } }: Subject): Promise<Finding> {
  if (connectorUrl === null) return skipped('No connector backend is configured: teams are kept in this store');
  const cure = 'Start the connector backend, or correct CONNECTOR_BACKEND_URL';
  try {
    const { status, body } = await fetch(connectorUrl, { redirect: 'manual', signal: AbortSignal.timeout(waitMs) });
    await body?.cancel();
    if (status < 500) return fine(`The connector backend answers at ${connectorUrl}`);
    return warning(`The connector backend at ${connectorUrl} answers ${status}`, cure);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return failed(`The connector backend at ${connectorUrl} does not answer: ${connectionText(cause)}`, cure);
  }
}
