import { z } from 'zod';
import type { GrantableScopes } from '../access/scopes.ts';
import { Secret } from '../base/secret.ts';
import { postgresAddresses } from '../db/postgres-address.ts';
import type { MailSender, MailServer } from '../mail/mail.ts';
import { mailSender, smtpUrl, tokenUrl } from '../mail/mail-address.ts';
import { isSharedIssuer } from '../oidc/issuers.ts';
import { emailTrusts, type OidcSettings } from '../oidc/oidc.ts';
import { brokerUrl } from '../outbox/brokers/broker-address.ts';
import type { EventsFormat } from '../outbox/envelope.ts';
import { normalizeEmail } from '../text/email-address.ts';

const splitList = (text: string) => text.split(/[\s,]+/).filter((part) => part !== '');
const list = z.string().transform(splitList);
const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
const givenAddress = z
  .url({ protocol: /^https?$/, error: 'must be an http or https address' })
  .refine((address) => !address.includes('@'), 'must not hold a name or password');
/** As it goes into headers and links: names beyond ASCII in their IDNA form, no slash at the end. Rule: FIT-52. */
function writtenAddress(address: string): string {
  const { origin: start, pathname, search, hash } = new URL(address);
  return (start + pathname + search + hash).replace(/\/+$/, '');
}
const webAddress = givenAddress.transform(writtenAddress);
const plainAddress = givenAddress
  // Looked for in the text, because a URL forgets those that are empty.
  .refine((address) => !/[?#]/.test(address), 'must not hold a query or a fragment')
  .transform(writtenAddress);
const displayPrefix = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/, 'must be 1 to 32 letters, digits, _ or -');
const origin = z
  .url({ protocol: /^https?$/, error: 'must be http or https origins' })
  .transform((address) => new URL(address).origin);
const network = z
  .union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], 'must be addresses or networks such as 10.0.0.7 or 10.0.0.0/8')
  .refine((text) => !text.endsWith('/0'), 'must not trust every address');

const secretBytesMin = 32;
const secretKindsMin = 8;
const placeholder = /change[-_ ]?me|placeholder|your[-_ ]?secret|example|password|^secret|insert[-_ ]?here|dummy/i;
/** A secret that others also hold must not be one that they can guess. Rule: CONFIG-6. */
const sharedSecret = z
  .string()
  .refine((text) => Buffer.byteLength(text) >= secretBytesMin, `must be at least ${secretBytesMin} bytes`)
  .refine((text) => new Set(text).size >= secretKindsMin, 'must not repeat a few characters')
  .refine((text) => !placeholder.test(text), 'must not be a placeholder: generate one, e.g. openssl rand -hex 32')
  .transform((text) => new Secret(text));

/** Issuer of OpenID Connect, with a slash at its end if it has one: over HTTP on loopback only. */
export const oidcIssuer = givenAddress
  .refine((address) => !/[?#]/.test(address), 'must not hold a query or a fragment')
  .refine(
    (address) => address.startsWith('https:') || /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:|\/|$)/.test(address),
    'must be an https address',
  )
  .refine(
    (address) => !isSharedIssuer(address),
    'must be the issuer of one tenant, with its id: common, organizations and consumers let everyone there in',
  );
const oauth2Secret = z
  .string()
  .max(10_000)
  .transform((text) => new Secret(text));
/** A domain of e-mail addresses. */
export const mailDomain = z
  .string()
  .toLowerCase()
  .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)+$/, 'must be domains such as example.com');

/** Returns whether a text is a URI for security.txt: `mailto:` with one address, or `https:`. */
function isContact(text: string): boolean {
  const address = /^mailto:([^?&,]+)$/i.exec(text)?.[1];
  if (address !== undefined) return normalizeEmail(address) !== null && !/\s/.test(address);
  return /^https:\/\/[!-~]+$/i.test(text) && URL.canParse(text) && !new URL(text).username;
}

/**
 * Every variable that the service reads, under its own name. Values are text, as in the environment; an empty one is
 * unset. Rules: CONFIG-21, CONFIG-23.
 */
export const variables = z.object({
  HOST: z.string().default('127.0.0.1').describe('Where it listens'),
  PORT: wholeNumber(0, 65_535).default(3000).describe('Where it listens; 0 takes any free port'),
  BASE_URL: plainAddress.optional().describe('The public address'),
  FRONTEND_URL: webAddress.optional().describe('The address of the web front end'),
  AUTH_BACKEND_URL: webAddress.optional().describe('The address of the sign-in service that clients get'),
  COMMUNICATION_BACKEND_URL: webAddress.optional().describe('The address of the mail service that clients get'),
  DATA_DIR: z.string().default('./data').describe('Embedded store and generated keys'),
  DATABASE_URL: z
    .string()
    .refine(
      (address) => postgresAddresses(address) !== null,
      'must be an address such as postgres://user:password@host:5432/latchkey',
    )
    .transform((address) => new Secret(address))
    .optional()
    .describe('The PostgreSQL database, for several nodes'),
  EVENTS_URL: brokerUrl.optional().describe('The broker that events go to, as nats:// or redis://'),
  EVENTS_FORMAT: z
    .enum(['envelope', 'cloudevents'], 'must be envelope or cloudevents')
    .default('envelope')
    .describe('The format of events at brokers and webhooks'),
  EVENT_RETENTION_DAYS: wholeNumber(1, 36_500).default(30).describe('How long relayed events are kept'),
  OUTBOUND_NETWORKS: list
    .pipe(z.array(network))
    .optional()
    .describe('Private addresses and networks that webhooks, and stored settings of mail and sign-on, may lead to'),
  WEBHOOK_NETWORKS: list.pipe(z.array(network)).optional().describe('The earlier name of OUTBOUND_NETWORKS'),
  CONNECTOR_BACKEND_URL: plainAddress.optional().describe('The connector backend, which holds the teams'),
  PAT_PREFIX: displayPrefix.default('lkpat').describe('Display prefix of personal access tokens'),
  PAT_PREFIXES_ACCEPTED: list.pipe(z.array(displayPrefix)).default([]).describe('Earlier display prefixes'),
  MCP_SCOPES: list
    .refine((names) => names.length > 0, 'must name at least one scope')
    .optional()
    .describe('The scopes that may be granted'),
  SCOPES_FILE: z.string().optional().describe('JSON file with further scopes'),
  JWT_ALGORITHM: z
    .enum(['EdDSA', 'HS256'], 'must be EdDSA or HS256')
    .default('EdDSA')
    .describe('How tokens are signed'),
  JWT_SECRET: sharedSecret.optional().describe('Shared secret for HS256'),
  SCOPED_JWT_SECRET: sharedSecret.optional().describe('Shared secret of trusted services'),
  ENCRYPTION_KEY: z
    .string()
    .regex(/^[0-9a-f]{64}$/i, 'must be 64 hexadecimal digits: generate them, e.g. openssl rand -hex 32')
    .refine((text) => new Set(text).size >= secretKindsMin, 'must not repeat a few digits')
    .transform((text) => new Secret(text))
    .optional()
    .describe('Encrypts stored settings'),
  SMTP_URL: smtpUrl.optional().describe('The mail server, as smtp://user:password@host:port'),
  MAIL_FROM: mailSender.optional().describe('The sender of mail'),
  MAIL_CONNECTIONS: wholeNumber(1, 10).default(2).describe('Connections to the mail server at once'),
  SMTP_OAUTH2_USER: z.string().max(320).optional().describe('The mailbox that sends mail, signed in to by OAuth 2.0'),
  SMTP_OAUTH2_CLIENT_ID: z.string().max(500).optional().describe('The client id of this service at its provider'),
  SMTP_OAUTH2_CLIENT_SECRET: oauth2Secret.optional().describe('The client secret of this service there'),
  SMTP_OAUTH2_REFRESH_TOKEN: oauth2Secret.optional().describe('The refresh token of the mailbox'),
  SMTP_OAUTH2_TOKEN_URL: tokenUrl.optional().describe('Where access tokens are issued'),
  INVITE_LINKS: z
    .enum(['on', 'off'], 'must be on or off')
    .default('on')
    .describe('Whether administrators may copy invitation links'),
  OIDC_ISSUER: oidcIssuer.optional().describe('The issuer of OpenID Connect that users may sign in with'),
  OIDC_CLIENT_ID: z.string().max(500).optional().describe('The client id of this service there'),
  OIDC_CLIENT_SECRET: z
    .string()
    .max(2_000)
    .transform((text) => new Secret(text))
    .optional()
    .describe('The client secret of this service there'),
  OIDC_ALLOWED_DOMAINS: list
    .pipe(z.array(mailDomain))
    .default([])
    .describe('Domains whose users get an account at their first sign-in'),
  OIDC_EMAIL_TRUST: z
    .enum(emailTrusts, 'must be claim or issuer')
    .default('claim')
    .describe('Which addresses of the issuer count as verified: those that email_verified says so of, or all'),
  SECURITY_CONTACT: z
    .string()
    .max(500)
    .refine(isContact, 'must be an address such as mailto:security@example.com or https://example.com/security')
    .optional()
    .describe('Where vulnerabilities are reported: security.txt'),
  RATE_LIMIT: z.enum(['on', 'off'], 'must be on or off').default('on').describe('Request limits and sign-in slow-down'),
  SESSION_MAX_DAYS: wholeNumber(1, 365)
    .default(90)
    .describe('How long a session lasts at most after the sign-in, refreshed or not'),
  REFRESH_ROTATION: z
    .enum(['on', 'off'], 'must be on or off')
    .default('on')
    .describe('Whether a refresh replaces the refresh token; off: one works for its 30 days'),
  TOKEN_RETENTION_DAYS: wholeNumber(1, 36_500).default(365).describe('How long ended tokens are kept'),
  AUDIT_RETENTION_DAYS: wholeNumber(30, 36_500)
    .optional()
    .describe('How long records of the audit log are kept; unset: for ever'),
  TRUST_PROXY: list.pipe(z.array(network)).default([]).describe('Addresses of trusted proxies'),
  CORS_ORIGINS: list.pipe(z.array(origin)).default([]).describe('Further browser origins'),
  LOG_LEVEL: z
    .enum(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'must be trace, debug, info, warn, error, fatal or silent',
    )
    .default('info')
    .describe('The log level'),
  METRICS: z
    .enum(['local', 'on', 'off'], 'must be local, on or off')
    .default('local')
    .describe('Where /metrics is: on METRICS_PORT, there and on PORT, or nowhere'),
  METRICS_PORT: wholeNumber(0, 65_535)
    .default(9464)
    .describe('The port of the loopback interface that shows /metrics; 0: none'),
});

/** A variable's name. */
export type VariableName = keyof typeof variables.shape;

/** The configuration of a running service; a snapshot that never changes. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** Without a slash at the end. */
  readonly baseUrl: string;
  /** The path of `baseUrl`: empty, or such as `/auth`. */
  readonly basePath: string;
  readonly frontendUrl: string;
  readonly authBackendUrl: string;
  readonly communicationBackendUrl: string;
  readonly dataDir: string;
  /** The database, credentials included; `null`: the embedded store. Rule: CONFIG-4. */
  readonly databaseUrl: Secret | null;
  /** The broker that events go to, credentials included; `null`: none. Rule: EVENT-16. */
  readonly eventsUrl: Secret | null;
  readonly eventsFormat: EventsFormat;
  readonly eventRetentionDays: number;
  /** `null`: for ever. Rule: AUDIT-19. */
  readonly auditRetentionDays: number | null;
  /** Networks that addresses set over the API may lead to although they are not public. Rules: CONFIG-40, EVENT-24. */
  readonly outboundNetworks: readonly string[];
  /** Without a slash at the end; `null` where the built-in team directory is used. */
  readonly connectorUrl: string | null;
  /** Underscore included. The first is the one that new tokens show. */
  readonly displayPrefixes: readonly [string, ...string[]];
  readonly scopes: GrantableScopes;
  readonly jwtSharedSecret: Secret | null;
  /** Secret that trusted services sign their scoped tokens with. */
  readonly scopedSharedSecret: Secret | null;
  /** Key that stored settings are encrypted with; `null`: a key of our own, in the data directory. */
  readonly encryptionKey: Secret | null;
  /** The mail server that environment or file name; `null`: what an administrator stored, if anything. */
  readonly mailServer: MailServer | null;
  /** Connections to the mail server at once. Rule: FIT-21. */
  readonly mailConnections: number;
  /** Sender of mail, for every server; `null`: the one of the server's settings. */
  readonly mailFrom: MailSender | null;
  /** Administrators may copy invitation links. Rule: INVITE-23. */
  readonly inviteLinks: boolean;
  /** The provider that environment or file name; `null`: what an administrator stored, if anything. */
  readonly oidc: OidcSettings | null;
  /** URI for reports of vulnerabilities; `null`: there is no security.txt. Rule: SECURITY-2. */
  readonly securityContact: string | null;
  readonly rateLimit: boolean;
  /** Maximum days of a session after the sign-in, refreshed or not. Rule: SESSION-4. */
  readonly sessionMaxDays: number;
  /** A refresh replaces the refresh token. Rule: SESSION-7. */
  readonly refreshRotation: boolean;
  readonly tokenRetentionDays: number;
  readonly trustProxy: readonly string[];
  readonly corsOrigins: readonly string[];
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
  readonly metrics: 'local' | 'on' | 'off';
  /** Port of the loopback interface; 0: none. Rule: FIT-55. */
  readonly metricsPort: number;
}
