import { existsSync, readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { catalogue, type GrantableScopes, grantableScopes, type ScopeInfo } from '../access/scopes.ts';
import { StartupError } from '../base/errors.ts';
import { emailTrustProblem } from '../oidc/issuers.ts';
import { type Config, type VariableName, variables } from './config.ts';
import { readMailServer } from './read-mail-server.ts';

type Environment = Readonly<Record<string, string | undefined>>;
type Values = z.infer<typeof variables>;

const names = variables.keyof().options;
const defaultFile = 'latchkey.config.json';
const secretNames = new Set<string>([
  'JWT_SECRET',
  'SCOPED_JWT_SECRET',
  'ENCRYPTION_KEY',
  'OIDC_CLIENT_SECRET',
  'SMTP_OAUTH2_CLIENT_SECRET',
  'SMTP_OAUTH2_REFRESH_TOKEN',
]);
const shownMax = 80;
const fileBytesMax = 1_048_576;

/** Error in the configuration; `variable` may be disclosed to callers, the message only to the operator. */
function wrong(variable: string, message: string): StartupError {
  return new StartupError(message, { variable });
}

/** Returns an address without its password, wherever that is: it may be the very error in the address. */
function withoutPassword(address: string): string {
  return (
    address
      // Up to the last @: a password that should have been percent-encoded may hold anything.
      .replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, '$1[secret]@')
      // What follows a name and is no port: the @ is missing, or was encoded too.
      .replace(/^([a-z][a-z\d+.-]*:\/\/[^\s/:[\]]*:)(?!\d*(?:[/?#]|$)).*/is, '$1[secret]')
      .replace(/(:\/\/.*\?).*/s, '$1[secret]')
  );
}

/** Returns a printable form of a variable's value: secrets and passwords in addresses masked. */
function shown(name: string, value: unknown): string {
  if (secretNames.has(name)) return '[secret]';
  const text = name === 'MAIL_FROM' ? String(value) : withoutPassword(String(value));
  return JSON.stringify(text.length > shownMax ? `${text.slice(0, shownMax)}…` : text);
}

function readText(file: string, variable: string): string {
  try {
    // A device would never end.
    const found = statSync(file);
    if (!(found.isFile() || found.isDirectory()) || found.size > fileBytesMax) {
      throw wrong(variable, `${variable} names ${JSON.stringify(file)}: it must be a file of at most 1 MB`);
    }
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof StartupError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw wrong(variable, `${variable} names ${JSON.stringify(file)}, which cannot be read (${code})`);
  }
}

function parseJson(file: string, variable: string): unknown {
  const text = readText(file, variable);
  try {
    return JSON.parse(text);
  } catch {
    throw wrong(variable, `${file} is not valid JSON`);
  }
}

function readConfigFile(environment: Environment): Readonly<Record<string, string>> {
  const named = environment['CONFIG_FILE'] || undefined;
  const file = named ?? defaultFile;
  if (named === undefined && !existsSync(file)) return {};
  const form = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));
  const parsed = form.safeParse(parseJson(file, 'CONFIG_FILE'));
  if (!parsed.success) throw wrong('CONFIG_FILE', `${file} must be one JSON object of names and plain values`);
  const unknown = Object.keys(parsed.data).find((key) => !variables.keyof().safeParse(key).success);
  if (unknown !== undefined) {
    throw wrong('CONFIG_FILE', `${file} sets ${unknown}, which is no variable of this service`);
  }
  return Object.fromEntries(Object.entries(parsed.data).map(([name, value]) => [name, String(value)]));
}

function readEnvironment(environment: Environment, name: VariableName): string | undefined {
  const direct = environment[name] || undefined;
  // SCOPES_FILE is a variable of its own, not the file form of one named SCOPES.
  const file = environment[`${name}_FILE`] || undefined;
  if (file === undefined) return direct;
  if (direct !== undefined) throw wrong(name, `${name} and ${name}_FILE are both set: unset one`);
  return readText(file, `${name}_FILE`).trim() || undefined;
}

function parseValues(environment: Environment): Values {
  const fromFile = readConfigFile(environment);
  const given: Partial<Record<VariableName, string>> = {};
  for (const name of names) {
    const value = readEnvironment(environment, name) ?? (fromFile[name] || undefined);
    if (value !== undefined) given[name] = value;
  }
  const parsed = variables.safeParse(given);
  if (parsed.success) return parsed.data;
  const problem = parsed.error.issues[0];
  const name = variables.keyof().parse(problem?.path[0]);
  throw wrong(name, `${name} is ${shown(name, given[name])}: it ${allowed(problem)}`);
}

function allowed(problem: z.core.$ZodIssue | undefined): string {
  const message = problem?.message ?? 'is not allowed';
  return /^(must|is) /.test(message) ? message : `must be right (${message})`;
}

const extraScopes = z.array(
  z.object({
    name: z.string().regex(/^[!#-[\]-~]{1,100}$/),
    description: z.string().min(1),
    category: z.string().min(1),
    requiresUserConsent: z.boolean().default(true),
  }),
);

function readScopes({ SCOPES_FILE, MCP_SCOPES }: Values): GrantableScopes {
  const all: ScopeInfo[] = [...catalogue];
  if (SCOPES_FILE !== undefined) {
    const parsed = extraScopes.safeParse(parseJson(SCOPES_FILE, 'SCOPES_FILE'));
    if (!parsed.success) {
      throw wrong(
        'SCOPES_FILE',
        `${SCOPES_FILE} must be a JSON list of { name, description, category, requiresUserConsent }`,
      );
    }
    all.push(...parsed.data);
  }
  const known = new Set(all.map((info) => info.name));
  if (known.size !== all.length) throw wrong('SCOPES_FILE', `${SCOPES_FILE} names a scope that exists already`);
  const unknown = MCP_SCOPES?.find((name) => !known.has(name));
  if (unknown !== undefined) {
    throw wrong('MCP_SCOPES', `MCP_SCOPES names ${JSON.stringify(unknown)}: it must name scopes of the catalogue`);
  }
  return grantableScopes(all, MCP_SCOPES ?? null);
}

function checkSecrets({ JWT_ALGORITHM, JWT_SECRET, SCOPED_JWT_SECRET }: Values, running: Config | null): void {
  if (JWT_ALGORITHM === 'HS256' && JWT_SECRET === undefined) {
    throw wrong('JWT_SECRET', 'JWT_SECRET is not set: with JWT_ALGORITHM HS256 it must be at least 32 bytes');
  }
  const ofSessions = [JWT_SECRET, running?.jwtSharedSecret].map((secret) => secret?.expose());
  if (SCOPED_JWT_SECRET && ofSessions.includes(SCOPED_JWT_SECRET.expose())) {
    throw wrong('SCOPED_JWT_SECRET', 'JWT_SECRET and SCOPED_JWT_SECRET hold the same secret: they must differ');
  }
}

/** Single sign-on, which takes all three of its variables or none. Rule: CONFIG-20. */
function readOidc(values: Values): Config['oidc'] {
  const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_ALLOWED_DOMAINS, OIDC_EMAIL_TRUST } = values;
  const parts = { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET };
  const missing = Object.entries(parts).find(([, value]) => value === undefined)?.[0];
  if (Object.values(parts).every((value) => value === undefined)) return null;
  if (OIDC_ISSUER === undefined || OIDC_CLIENT_ID === undefined || OIDC_CLIENT_SECRET === undefined) {
    throw wrong(
      String(missing),
      `${missing} is not set: single sign-on takes OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET`,
    );
  }
  const problem = emailTrustProblem({ issuer: OIDC_ISSUER, emailTrust: OIDC_EMAIL_TRUST });
  if (problem !== null) throw wrong('OIDC_EMAIL_TRUST', `OIDC_EMAIL_TRUST ${problem}`);
  return {
    issuer: OIDC_ISSUER,
    clientId: OIDC_CLIENT_ID,
    clientSecret: OIDC_CLIENT_SECRET,
    allowedDomains: OIDC_ALLOWED_DOMAINS,
    groupIds: [],
    emailTrust: OIDC_EMAIL_TRUST,
    changedAtMs: null,
  };
}

/** Returns the networks that settings of administrators may lead to. Rule: CONFIG-31. */
function readNetworks({ OUTBOUND_NETWORKS, WEBHOOK_NETWORKS }: Values): readonly string[] {
  if (OUTBOUND_NETWORKS !== undefined && WEBHOOK_NETWORKS !== undefined) {
    throw wrong(
      'WEBHOOK_NETWORKS',
      'OUTBOUND_NETWORKS and WEBHOOK_NETWORKS are both set: unset WEBHOOK_NETWORKS, which is its earlier name',
    );
  }
  return OUTBOUND_NETWORKS ?? WEBHOOK_NETWORKS ?? [];
}

/** Converts an unset value to `null`. */
function orNull<T>(value: T | undefined): T | null {
  return value ?? null;
}

/**
 * Reads the configuration: environment first, then `latchkey.config.json` (or the file at `CONFIG_FILE`), then the
 * defaults. Throws StartupError in one line that names the variable, its value and the allowed ones.
 * @param running the running configuration: values that depend on a part that waits for a restart depend on its present
 * value
 */
export function loadConfig(environment: Environment, running: Config | null = null): Config {
  const values = parseValues(environment);
  checkSecrets(values, running);
  const baseUrl = values.BASE_URL ?? `http://localhost:${running?.port ?? values.PORT}`;
  const frontendUrl = values.FRONTEND_URL ?? baseUrl;
  return {
    host: values.HOST,
    port: values.PORT,
    baseUrl,
    basePath: new URL(baseUrl).pathname.replace(/\/$/, ''),
    frontendUrl,
    authBackendUrl: values.AUTH_BACKEND_URL ?? baseUrl,
    communicationBackendUrl: values.COMMUNICATION_BACKEND_URL ?? baseUrl,
    dataDir: values.DATA_DIR,
    databaseUrl: orNull(values.DATABASE_URL),
    eventsUrl: values.EVENTS_URL ?? null,
    eventsFormat: values.EVENTS_FORMAT,
    eventRetentionDays: values.EVENT_RETENTION_DAYS,
    auditRetentionDays: orNull(values.AUDIT_RETENTION_DAYS),
    outboundNetworks: readNetworks(values),
    connectorUrl: orNull(values.CONNECTOR_BACKEND_URL),
    displayPrefixes: [`${values.PAT_PREFIX}_`, ...values.PAT_PREFIXES_ACCEPTED.map((prefix) => `${prefix}_`)],
    scopes: readScopes(values),
    jwtSharedSecret: values.JWT_ALGORITHM === 'HS256' ? (values.JWT_SECRET ?? null) : null,
    scopedSharedSecret: orNull(values.SCOPED_JWT_SECRET),
    encryptionKey: orNull(values.ENCRYPTION_KEY),
    mailServer: readMailServer(values),
    mailConnections: values.MAIL_CONNECTIONS,
    mailFrom: orNull(values.MAIL_FROM),
    oidc: readOidc(values),
    inviteLinks: values.INVITE_LINKS === 'on',
    securityContact: orNull(values.SECURITY_CONTACT),
    rateLimit: values.RATE_LIMIT === 'on',
    sessionMaxDays: values.SESSION_MAX_DAYS,
    refreshRotation: values.REFRESH_ROTATION === 'on',
    tokenRetentionDays: values.TOKEN_RETENTION_DAYS,
    trustProxy: values.TRUST_PROXY,
    corsOrigins: [new URL(frontendUrl).origin, ...values.CORS_ORIGINS],
    logLevel: values.LOG_LEVEL,
    metrics: values.METRICS,
    metricsPort: values.METRICS_PORT,
  };
}
