import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { catalogue } from '../access/scopes.ts';
import { StartupError } from '../base/errors.ts';
import { loadConfig } from './load-config.ts';

const good = 'kX9vQ2mZ7pL4wR8tB1nC6yD3sF5gH0jA';
const other = 'Zr4uT8yB2nM6kW0qE9aS3dF7gH1jK5lP';
const encryption = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

let directory: string;
const startedIn = process.cwd();
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  process.chdir(directory);
});
afterEach(() => rmSync(join(directory, 'latchkey.config.json'), { force: true }));
afterAll(() => {
  process.chdir(startedIn);
  rmSync(directory, { recursive: true, force: true });
});

function file(name: string, content: unknown): string {
  const path = join(directory, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

/** The one line that a start with this environment ends with. */
function apiError(environment: Readonly<Record<string, string>>): string {
  try {
    loadConfig(environment);
  } catch (error) {
    if (error instanceof StartupError && !/[\r\n]/.test(error.message)) return error.message;
    throw error;
  }
  throw new Error(`accepted: ${JSON.stringify(environment)}`);
}

describe('loadConfig', () => {
  it('has a default for everything (CONFIG-1 to CONFIG-3, CONFIG-5, CONFIG-6, CONFIG-8, CONFIG-10 to CONFIG-12, CONFIG-14 to CONFIG-19, CONFIG-28, CONFIG-30, CONFIG-31)', () => {
    const { scopes, ...rest } = loadConfig({});
    expect(rest).toEqual({
      host: '127.0.0.1',
      port: 3000,
      baseUrl: 'http://localhost:3000',
      basePath: '',
      frontendUrl: 'http://localhost:3000',
      authBackendUrl: 'http://localhost:3000',
      communicationBackendUrl: 'http://localhost:3000',
      dataDir: './data',
      databaseUrl: null,
      eventsUrl: null,
      eventsFormat: 'envelope',
      eventRetentionDays: 30,
      auditRetentionDays: null,
      outboundNetworks: [],
      connectorUrl: null,
      displayPrefixes: ['lkpat_'],
      jwtSharedSecret: null,
      scopedSharedSecret: null,
      encryptionKey: null,
      mailServer: null,
      mailConnections: 2,
      mailFrom: null,
      oidc: null,
      inviteLinks: true,
      rateLimit: true,
      securityContact: null,
      sessionMaxDays: 90,
      refreshRotation: true,
      tokenRetentionDays: 365,
      trustProxy: [],
      corsOrigins: ['http://localhost:3000'],
      logLevel: 'info',
      metrics: 'local',
      metricsPort: 9464,
    });
    expect(scopes.infos).toEqual(catalogue);
  });

  it('takes every variable (CONFIG-1 to CONFIG-19, CONFIG-28 to CONFIG-31)', () => {
    const {
      scopes: _,
      jwtSharedSecret,
      scopedSharedSecret,
      encryptionKey,
      mailServer,
      eventsUrl,
      ...rest
    } = loadConfig({
      HOST: '0.0.0.0',
      PORT: '8080',
      BASE_URL: 'https://id.example.com/',
      FRONTEND_URL: 'https://app.example.com/console//',
      AUTH_BACKEND_URL: 'https://auth.example.com/',
      COMMUNICATION_BACKEND_URL: 'https://mail.example.com',
      DATA_DIR: '/var/lib/latchkey',
      EVENTS_URL: 'nats://ada:pa55word@mq.example.com',
      EVENTS_FORMAT: 'cloudevents',
      EVENT_RETENTION_DAYS: '7',
      AUDIT_RETENTION_DAYS: '90',
      WEBHOOK_NETWORKS: '10.0.0.7, fd00::/8',
      PAT_PREFIX: 'acme',
      CONNECTOR_BACKEND_URL: 'https://teams.example.com:8443/connector/',
      PAT_PREFIXES_ACCEPTED: 'old, older-1 oldest',
      JWT_ALGORITHM: 'HS256',
      JWT_SECRET: good,
      SCOPED_JWT_SECRET: other,
      ENCRYPTION_KEY: encryption,
      SMTP_URL: 'smtps://mailer:pa55word@smtp.example.com',
      MAIL_FROM: 'Example <no-reply@example.com>',
      MAIL_CONNECTIONS: '5',
      INVITE_LINKS: 'off',
      SECURITY_CONTACT: 'mailto:security@example.com',
      RATE_LIMIT: 'off',
      SESSION_MAX_DAYS: '365',
      REFRESH_ROTATION: 'off',
      TOKEN_RETENTION_DAYS: '1',
      TRUST_PROXY: '10.0.0.7, 10.1.0.0/16 ::1,fd00::/8',
      CORS_ORIGINS: 'https://one.example.com/, http://two.example.com:8080/path',
      LOG_LEVEL: 'silent',
      METRICS: 'off',
      METRICS_PORT: '9000',
    });
    expect(rest).toEqual({
      host: '0.0.0.0',
      port: 8080,
      baseUrl: 'https://id.example.com',
      basePath: '',
      frontendUrl: 'https://app.example.com/console',
      authBackendUrl: 'https://auth.example.com',
      communicationBackendUrl: 'https://mail.example.com',
      oidc: null,
      dataDir: '/var/lib/latchkey',
      databaseUrl: null,
      eventsFormat: 'cloudevents',
      eventRetentionDays: 7,
      auditRetentionDays: 90,
      outboundNetworks: ['10.0.0.7', 'fd00::/8'],
      connectorUrl: 'https://teams.example.com:8443/connector',
      displayPrefixes: ['acme_', 'old_', 'older-1_', 'oldest_'],
      mailConnections: 5,
      mailFrom: { name: 'Example', address: 'no-reply@example.com' },
      inviteLinks: false,
      rateLimit: false,
      securityContact: 'mailto:security@example.com',
      sessionMaxDays: 365,
      refreshRotation: false,
      tokenRetentionDays: 1,
      trustProxy: ['10.0.0.7', '10.1.0.0/16', '::1', 'fd00::/8'],
      corsOrigins: ['https://app.example.com', 'https://one.example.com', 'http://two.example.com:8080'],
      logLevel: 'silent',
      metrics: 'off',
      metricsPort: 9000,
    });
    expect([jwtSharedSecret?.expose(), scopedSharedSecret?.expose()]).toEqual([good, other]);
    expect(encryptionKey?.expose()).toBe(encryption);
    const secrets = [jwtSharedSecret, scopedSharedSecret, encryptionKey, mailServer?.login?.password, eventsUrl];
    expect(secrets.map(String)).toEqual(secrets.map(() => '[secret]'));
    const server = { host: 'smtp.example.com', port: 465, security: 'tls', login: { username: 'mailer' } };
    expect(mailServer).toMatchObject(server);
    expect(eventsUrl?.expose()).toBe('nats://ada:pa55word@mq.example.com');
  });

  it('keeps the audit log for at least 30 days, or for ever (AUDIT-19)', () => {
    expect(loadConfig({ AUDIT_RETENTION_DAYS: '' }).auditRetentionDays).toBeNull();
    expect(loadConfig({ AUDIT_RETENTION_DAYS: '30' }).auditRetentionDays).toBe(30);
    for (const value of ['29', '0', '-1', '36501', 'never']) {
      expect(() => loadConfig({ AUDIT_RETENTION_DAYS: value })).toThrow(/^AUDIT_RETENTION_DAYS is /);
    }
  });

  it('bases the public address on the port (CONFIG-2)', () => {
    expect(loadConfig({ PORT: '4001' })).toMatchObject({ baseUrl: 'http://localhost:4001' });
    expect(loadConfig({ BASE_URL: 'https://x.example' })).toMatchObject({ frontendUrl: 'https://x.example' });
  });

  it.each([
    ['https://例え.jp', 'https://xn--r8jz45g.jp', ''],
    ['https://例え.jp:8443/認証/', 'https://xn--r8jz45g.jp:8443/%E8%AA%8D%E8%A8%BC', '/%E8%AA%8D%E8%A8%BC'],
    ['HTTPS://ID.example.com/Auth', 'https://id.example.com/Auth', '/Auth'],
    ['https://id.example.com/a/../b//', 'https://id.example.com/b', '/b'],
    ['http://[2001:DB8::1]:80', 'http://[2001:db8::1]', ''],
  ])('BASE_URL %s is %s, as it goes into headers (FIT-50, FIT-52)', (given, baseUrl, basePath) => {
    const { origin } = new URL(baseUrl);
    expect(loadConfig({ BASE_URL: given })).toMatchObject({ baseUrl, basePath, corsOrigins: [origin] });
  });

  const wrong: readonly [string, string, string][] = [
    ['PORT', '65536', 'must be at most 65535'],
    ['PORT', '-1', 'must be a whole number'],
    ['PORT', '80a', 'must be a whole number'],
    ['PORT', '1e3', 'must be a whole number'],
    ['BASE_URL', 'id.example.com', 'must be an http or https address'],
    ['BASE_URL', 'ftp://id.example.com', 'must be an http or https address'],
    ['BASE_URL', 'https://id.example.com/#a', 'must not hold a query or a fragment'],
    ['METRICS_PORT', '65536', 'must be at most 65535'],
    ['FRONTEND_URL', 'javascript:alert(1)', 'must be an http or https address'],
    ['CONNECTOR_BACKEND_URL', 'teams.example.com', 'must be an http or https address'],
    ['CONNECTOR_BACKEND_URL', 'unix:/run/teams', 'must be an http or https address'],
    [
      'DATABASE_URL',
      'mysql://db.example.com/x',
      'must be an address such as postgres://user:password@host:5432/latchkey',
    ],
    [
      'DATABASE_URL',
      'postgres://one.example.com,/x',
      'must be an address such as postgres://user:password@host:5432/latchkey',
    ],
    ['PAT_PREFIX', 'a b', 'must be 1 to 32 letters, digits, _ or -'],
    ['PAT_PREFIX', 'x'.repeat(33), 'must be 1 to 32 letters, digits, _ or -'],
    ['PAT_PREFIXES_ACCEPTED', 'good -bad', 'must be 1 to 32 letters, digits, _ or -'],
    ['JWT_ALGORITHM', 'none', 'must be EdDSA or HS256'],
    ['JWT_ALGORITHM', 'hs256', 'must be EdDSA or HS256'],
    ['RATE_LIMIT', 'true', 'must be on or off'],
    ['SESSION_MAX_DAYS', '0', 'must be at least 1'],
    ['SESSION_MAX_DAYS', '366', 'must be at most 365'],
    ['SESSION_MAX_DAYS', 'never', 'must be a whole number'],
    ['REFRESH_ROTATION', 'no', 'must be on or off'],
    ['TOKEN_RETENTION_DAYS', '0', 'must be at least 1'],
    ['TOKEN_RETENTION_DAYS', '36501', 'must be at most 36500'],
    ['TRUST_PROXY', 'true', 'must be addresses or networks such as 10.0.0.7 or 10.0.0.0/8'],
    ['TRUST_PROXY', '10.0.0.7 10.0.0.0/33', 'must be addresses or networks such as 10.0.0.7 or 10.0.0.0/8'],
    ['CORS_ORIGINS', '*', 'must be http or https origins'],
    ['CORS_ORIGINS', 'https://good.example.com file:///etc', 'must be http or https origins'],
    ['LOG_LEVEL', 'verbose', 'must be trace, debug, info, warn, error, fatal or silent'],
    ['METRICS', 'yes', 'must be local, on or off'],
    ['INVITE_LINKS', 'true', 'must be on or off'],
    ['EVENTS_URL', 'kafka://mq.example.com', 'must be nats://user:password@host:port, tls://…'],
    ['EVENTS_FORMAT', 'json', 'must be envelope or cloudevents'],
    ['WEBHOOK_NETWORKS', '10.0.0.0/33', 'must be addresses or networks such as 10.0.0.7 or 10.0.0.0/8'],
    ['OUTBOUND_NETWORKS', '0.0.0.0/0', 'must not trust every address'],
    ['SMTP_URL', 'smtp.example.com', 'must be smtp://user:password@host:port or smtps://…'],
    ['MAIL_FROM', 'Example no-reply@example.com', 'must be an address such as Example <no-reply@example.com>'],
  ];
  it.each(wrong)(
    'refuses %s=%s in one line with name, value and what is allowed (CONFIG-24)',
    (name, value, allowed) => {
      const line = apiError({ [name]: value });
      expect(line).toContain(`${name} is ${JSON.stringify(value)}: it ${allowed}`);
    },
  );

  it.each([
    ['mysql://ada:pa55-mot@db.example.com/x', 'pa55'],
    ['mysql://ada:pa55@mot@db.example.com/x', 'mot'],
    ['mysql://ada:pa55/mot@db.example.com/x', 'mot'],
    ['mysql://ada:pa55 mot@db.example.com/x', 'mot'],
  ])('masks the password in %s (CONFIG-24)', (address, secret) => {
    for (const name of ['DATABASE_URL', 'PORT', 'TRUST_PROXY']) {
      const line = apiError({ [name]: address });
      expect(line).not.toContain(secret);
      expect(line).toContain('//[secret]@db.example.com/x');
    }
  });

  it.each([
    ['ada:pa55word@smtp.example.com:587', '[secret]@smtp.example.com:587'],
    ['smtp:/ada:pa55word@smtp.example.com', '[secret]@smtp.example.com'],
    ['smtps:ada:pa55word@smtp.example.com', '[secret]@smtp.example.com'],
    ['imap://ada:pa55word@smtp.example.com', 'imap://[secret]@smtp.example.com'],
    ['smtp://ada:pa55word@x@smtp.example.com/x', 'smtp://[secret]@smtp.example.com/x'],
    ['smtp://ada:%pa55word@smtp.example.com', 'smtp://[secret]@smtp.example.com'],
    ['smtp://ada:pa55word@smtp.example.com:0', 'smtp://[secret]@smtp.example.com:0'],
    ['smtp://:pa55word@smtp.example.com', 'smtp://[secret]@smtp.example.com'],
    ['smtp://ada:pa55word', 'smtp://ada:[secret]'],
    ['smtp://ada:pa55word%40smtp.example.com:587', 'smtp://ada:[secret]'],
    ['smtp://smtp.example.com?password=pa55word', 'smtp://smtp.example.com?[secret]'],
    ['smtp://smtp.example.com:99999', 'smtp://smtp.example.com:99999'],
  ])('masks the password in SMTP_URL=%s, whatever is wrong with it (CONFIG-11, CONFIG-24)', (address, told) => {
    expect(apiError({ SMTP_URL: address })).toMatch(`SMTP_URL is ${JSON.stringify(told)}: it must be smtp://`);
    expect(apiError({ DATABASE_URL: address })).not.toContain('pa55');
  });

  it.each([
    ['http://teams.example.com/x?key=word', 'must not hold a query or a fragment'],
    ['http://teams.example.com/?', 'must not hold a query or a fragment'],
    ['http://teams.example.com/#', 'must not hold a query or a fragment'],
    ['http://user@teams.example.com', 'must not hold a name or password'],
    ['http://user:word@teams.example.com', 'must not hold a name or password'],
  ])('refuses CONNECTOR_BACKEND_URL=%s: an address and a path at most (CONFIG-13)', (address, allowed) => {
    const line = apiError({ CONNECTOR_BACKEND_URL: address });
    expect(line).toContain('CONNECTOR_BACKEND_URL is "http://');
    expect(line).toContain(`: it ${allowed}`);
    expect(line).not.toContain('word"');
  });

  it('keeps the line short and on one line, whatever the value (CONFIG-24)', () => {
    const line = apiError({ METRICS: `a\nb\r${'x'.repeat(10_000)}` });
    expect(line.length).toBeLessThan(200);
    expect(line).toContain('a\\nb');
  });

  it('takes an empty string as unset (CONFIG-23)', () => {
    const empty = { HOST: '', PORT: '', BASE_URL: '', DATABASE_URL: '', MCP_SCOPES: '', JWT_SECRET: '', METRICS: '' };
    expect(loadConfig({ ...empty, PORT_FILE: '', CONFIG_FILE: '', SCOPES_FILE: '' })).toMatchObject({
      port: 3000,
      metrics: 'local',
    });
  });
});

describe('loadConfig with files', () => {
  it('reads any variable from the file that <NAME>_FILE names (CONFIG-21)', () => {
    const secret = file('secret', `${good}\n`);
    const config = loadConfig({ JWT_ALGORITHM: 'HS256', JWT_SECRET_FILE: secret, PORT_FILE: file('port', ' 4002 \n') });
    expect(config.jwtSharedSecret?.expose()).toBe(good);
    expect(config.port).toBe(4002);
    expect(loadConfig({ METRICS_FILE: file('empty', '\n') }).metrics).toBe('local');
  });

  it('refuses a variable and its file at once, and a file that is not there (CONFIG-21)', () => {
    const path = file('port', '4002');
    expect(apiError({ PORT: '4001', PORT_FILE: path })).toBe('PORT and PORT_FILE are both set: unset one');
    const missing = join(directory, 'missing');
    expect(apiError({ JWT_SECRET_FILE: missing })).toBe(
      `JWT_SECRET_FILE names ${JSON.stringify(missing)}, which cannot be read (ENOENT)`,
    );
    expect(apiError({ PORT_FILE: directory })).toContain('(EISDIR)');
  });

  it('names the variable when the value from its file is wrong, a secret masked (CONFIG-24)', () => {
    expect(apiError({ PORT_FILE: file('port', 'many') })).toContain('PORT is "many"');
    const line = apiError({ JWT_SECRET_FILE: file('secret', 'too-short-value') });
    expect(line).toBe('JWT_SECRET is [secret]: it must be at least 32 bytes');
  });

  it('reads latchkey.config.json in the working directory, numbers and booleans too (CONFIG-22)', () => {
    file('latchkey.config.json', { PORT: 4003, HOST: '::1', METRICS: 'on', LOG_LEVEL: '' });
    expect(loadConfig({})).toMatchObject({ port: 4003, host: '::1', metrics: 'on', logLevel: 'info' });
  });

  it('reads the file at CONFIG_FILE instead (CONFIG-22)', () => {
    file('latchkey.config.json', { PORT: 4003, HOST: '::1' });
    const path = file('elsewhere.json', { PORT: 4004 });
    expect(loadConfig({ CONFIG_FILE: path })).toMatchObject({ port: 4004, host: '127.0.0.1' });
  });

  it('puts the environment first, <NAME>_FILE included, then the file, then the default (CONFIG-23)', () => {
    file('latchkey.config.json', { PORT: 4003, HOST: '::1', METRICS: 'on' });
    const config = loadConfig({ PORT: '4005', HOST_FILE: file('host', '0.0.0.0'), METRICS: '' });
    expect(config).toMatchObject({ port: 4005, host: '0.0.0.0', metrics: 'on', rateLimit: true });
  });

  it('refuses a file that is missing, no JSON, no object, or sets what is no variable (CONFIG-22, CONFIG-24)', () => {
    const at = (content: unknown) => apiError({ CONFIG_FILE: file('wrong.json', content) });
    expect(apiError({ CONFIG_FILE: join(directory, 'missing') })).toMatch(
      /^CONFIG_FILE names .* cannot be read \(ENOENT\)$/,
    );
    expect(at('{ "PORT": 1')).toMatch(/wrong\.json is not valid JSON$/);
    for (const content of [[], 'text', 7, null, { PORT: null }, { PORT: [1] }, { PORT: { x: 1 } }]) {
      expect(at(JSON.stringify(content))).toMatch(/wrong\.json must be one JSON object of names and plain values$/);
    }
    expect(at({ PROT: 1 })).toMatch(/wrong\.json sets PROT, which is no variable of this service$/);
    expect(at({ PORT: 70_000 })).toBe('PORT is "70000": it must be at most 65535');
    expect(at({ JWT_SECRET: 'in-the-file' })).toBe('JWT_SECRET is [secret]: it must be at least 32 bytes');
  });
});

describe('OUTBOUND_NETWORKS (CONFIG-31)', () => {
  it('is what WEBHOOK_NETWORKS was, which still counts; both at once are refused', () => {
    const networks = (environment: Record<string, string>) => loadConfig(environment).outboundNetworks;
    expect(networks({ OUTBOUND_NETWORKS: '10.0.0.7 fd00::/8' })).toEqual(['10.0.0.7', 'fd00::/8']);
    expect(networks({ WEBHOOK_NETWORKS: '10.0.0.7' })).toEqual(['10.0.0.7']);
    expect(networks({})).toEqual([]);
    expect(() => networks({ OUTBOUND_NETWORKS: '10.0.0.7', WEBHOOK_NETWORKS: '10.0.0.8' })).toThrow(
      'OUTBOUND_NETWORKS and WEBHOOK_NETWORKS are both set: unset WEBHOOK_NETWORKS, which is its earlier name',
    );
  });
});
