import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StartupError } from '../base/errors.ts';
import type { Config } from './config.ts';
import { type LiveConfig, liveConfig } from './live-config.ts';
import { loadConfig } from './load-config.ts';

const secret = 'kX9vQ2mZ7pL4wR8tB1nC6yD3sF5gH0jA';
const other = 'Zr4uT8yB2nM6kW0qE9aS3dF7gH1jK5lP';

let directory: string;
let environment: Record<string, string>;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  environment = { CONFIG_FILE: join(directory, 'latchkey.config.json') };
  write({});
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Writes the configuration file. */
function write(content: unknown): void {
  writeFileSync(
    join(directory, 'latchkey.config.json'),
    typeof content === 'string' ? content : JSON.stringify(content),
  );
}

/** Returns the configuration of a start with this environment and file, and every snapshot that its listeners got. */
function start(): { readonly live: LiveConfig; readonly told: Config[] } {
  const live = liveConfig((running) => loadConfig(environment, running));
  const told: Config[] = [];
  live.onChange((config) => told.push(config));
  return { live, told };
}

/** Returns the error of a reload. */
function apiError(live: LiveConfig): StartupError {
  try {
    live.reload();
  } catch (error) {
    if (error instanceof StartupError) return error;
    throw error;
  }
  throw new Error('accepted');
}

describe('a reload', () => {
  it('exchanges the whole snapshot and leaves the earlier one as it was (CONFIG-25)', () => {
    write({ PAT_PREFIX: 'one', FRONTEND_URL: 'https://one.example.net' });
    const { live, told } = start();
    const [earlier, { generation }] = [live.current, live];
    write({ PAT_PREFIX: 'two', FRONTEND_URL: 'https://two.example.net' });
    expect(live.current).toBe(earlier);
    const later = live.reload();
    expect(live.current).toBe(later);
    expect(told).toEqual([later]);
    expect(live.generation).toBe(generation + 1);
    const pairs = [earlier, later].map(({ displayPrefixes, frontendUrl }) => [displayPrefixes[0], frontendUrl]);
    expect(pairs).toEqual([
      ['one_', 'https://one.example.net'],
      ['two_', 'https://two.example.net'],
    ]);
  });

  it('leaves what only a start can change (CONFIG-25)', () => {
    const key = '0123456789abcdef'.repeat(4);
    write({
      HOST: '127.0.0.2',
      PORT: 4000,
      DATA_DIR: 'one',
      JWT_ALGORITHM: 'HS256',
      JWT_SECRET: secret,
      ENCRYPTION_KEY: key,
    });
    const { live } = start();
    const before = live.current;
    const fixed = ({ host, port, dataDir, jwtSharedSecret, encryptionKey }: Config) => [
      host,
      port,
      dataDir,
      jwtSharedSecret?.expose(),
      encryptionKey?.expose(),
    ];
    expect(fixed(before)).toEqual(['127.0.0.2', 4000, 'one', secret, key]);
    for (const JWT_ALGORITHM of ['HS256', 'EdDSA']) {
      const changed = { HOST: '127.0.0.3', PORT: 5000, DATA_DIR: 'two', JWT_ALGORITHM, JWT_SECRET: other };
      write({ ...changed, ENCRYPTION_KEY: key.replaceAll('0', 'f'), METRICS: 'off' });
      expect(fixed(live.reload())).toEqual(fixed(before));
      expect(live.current.metrics).toBe('off');
    }
  });

  it('keeps the addresses that depend on PORT as long as that waits for a restart (CONFIG-2, CONFIG-12, CONFIG-25)', () => {
    write({ PORT: 4000 });
    const { live } = start();
    write({ PORT: 5000 });
    const { baseUrl, frontendUrl, authBackendUrl, communicationBackendUrl, corsOrigins } = live.reload();
    const all = [baseUrl, frontendUrl, authBackendUrl, communicationBackendUrl, ...corsOrigins];
    expect(all).toEqual(all.map(() => 'http://localhost:4000'));
    write({ PORT: 5000, BASE_URL: 'http://localhost:5000' });
    expect(live.reload().baseUrl).toBe('http://localhost:5000');
  });

  it('does not give services the secret that sessions are still signed with (CONFIG-6, CONFIG-25)', () => {
    write({ JWT_ALGORITHM: 'HS256', JWT_SECRET: secret, SCOPED_JWT_SECRET: other });
    const { live } = start();
    const before = live.current;
    write({ JWT_ALGORITHM: 'HS256', JWT_SECRET: other, SCOPED_JWT_SECRET: secret });
    expect(apiError(live)).toMatchObject({
      variable: 'SCOPED_JWT_SECRET',
      message: 'JWT_SECRET and SCOPED_JWT_SECRET hold the same secret: they must differ',
    });
    expect(live.current).toBe(before);
  });

  it.each<[string, () => void, string]>([
    ['a wrong value', () => write({ PAT_PREFIX: 'two', METRICS: 'everywhere' }), 'METRICS'],
    ['a name that is none', () => write({ PAT_PREFIX: 'two', JSON_LOG: 'on' }), 'CONFIG_FILE'],
    ['broken JSON', () => write('{ "PAT_PREFIX": "two"'), 'CONFIG_FILE'],
    ['a list', () => write([]), 'CONFIG_FILE'],
    ['a file that is gone', () => rmSync(join(directory, 'latchkey.config.json')), 'CONFIG_FILE'],
    ['a wrong file beside it', () => write({ SCOPES_FILE: join(directory, 'latchkey.config.json') }), 'SCOPES_FILE'],
    ['an unknown scope', () => write({ MCP_SCOPES: 'user:read user:fly' }), 'MCP_SCOPES'],
    ['a value in two places', () => Object.assign(environment, { METRICS: 'on', METRICS_FILE: '/x' }), 'METRICS'],
    ['a file for a value that is not there', () => Object.assign(environment, { METRICS_FILE: '/x' }), 'METRICS_FILE'],
    ['half of single sign-on', () => write({ OIDC_ISSUER: 'https://id.example.net' }), 'OIDC_CLIENT_ID'],
    ['no secret to sign with', () => write({ JWT_ALGORITHM: 'HS256' }), 'JWT_SECRET'],
  ])('changes nothing for %s, and says which variable it is (CONFIG-27)', (_, spoil, variable) => {
    write({ PAT_PREFIX: 'one' });
    const { live, told } = start();
    const [before, { generation }] = [live.current, live];
    spoil();
    expect(apiError(live).variable).toBe(variable);
    expect([live.current, live.generation, told]).toEqual([before, generation, []]);
    expect(live.current).toBe(before);
  });
});
