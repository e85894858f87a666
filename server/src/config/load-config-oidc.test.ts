import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from './load-config.ts';

const secret = 'tRuSt-No-OnE-4711';
const whole = {
  OIDC_ISSUER: 'https://id.example.com/realms/a/',
  OIDC_CLIENT_ID: 'latchkey',
  OIDC_CLIENT_SECRET: secret,
} as const;

/** Returns the one line of a failed start; `null` where it succeeds. */
function apiError(environment: Record<string, string>): string | null {
  try {
    loadConfig(environment);
    return null;
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : 'no error';
  }
}

describe('the configuration of single sign-on', () => {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-oidc-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is none by default, also where only domains are named (CONFIG-20)', () => {
    expect(loadConfig({}).oidc).toBeNull();
    expect(loadConfig({ OIDC_ALLOWED_DOMAINS: 'example.com' }).oidc).toBeNull();
    expect(loadConfig({ OIDC_ISSUER: '', OIDC_CLIENT_ID: '', OIDC_CLIENT_SECRET: '' }).oidc).toBeNull();
  });

  it('takes the issuer as it is, a slash at its end included, and hides the secret (CONFIG-20)', () => {
    const { oidc } = loadConfig({ ...whole, OIDC_ALLOWED_DOMAINS: 'Example.COM, xn--bcher-kva.example other.example' });
    expect(oidc).toMatchObject({
      issuer: 'https://id.example.com/realms/a/',
      clientId: 'latchkey',
      allowedDomains: ['example.com', 'xn--bcher-kva.example', 'other.example'],
      groupIds: [],
      emailTrust: 'claim',
    });
    expect(oidc?.clientSecret.expose()).toBe(secret);
    expect(JSON.stringify(oidc)).not.toContain(secret);
  });

  it('takes all addresses of an issuer for verified where the operator says so (FIT-1, FIT-2)', () => {
    expect(loadConfig({ ...whole, OIDC_EMAIL_TRUST: 'issuer' }).oidc?.emailTrust).toBe('issuer');
    expect(apiError({ ...whole, OIDC_EMAIL_TRUST: 'all' })).toMatch(
      /^StartupError: OIDC_EMAIL_TRUST .*claim or issuer/,
    );
    for (const issuer of [
      'https://accounts.google.com',
      'https://appleid.apple.com',
      'https://securetoken.google.com/a-project',
      'https://discord.com',
      'https://login.microsoftonline.com/9188040D-6c67-4c5b-b112-36a304b66dad/v2.0',
    ]) {
      expect(loadConfig({ ...whole, OIDC_ISSUER: issuer }).oidc?.issuer).toBe(issuer);
      const line = apiError({ ...whole, OIDC_ISSUER: issuer, OIDC_EMAIL_TRUST: 'issuer' });
      expect(line).toMatch(/^StartupError: OIDC_EMAIL_TRUST must be claim for this issuer/);
    }
  });

  it.each(['common', 'organizations', 'consumers', 'COMMON'])(
    'refuses the issuer of all tenants, %s (FIT-6)',
    (name) => {
      const line = apiError({ ...whole, OIDC_ISSUER: `https://login.microsoftonline.com/${name}/v2.0` });
      expect(line).toMatch(/^StartupError: OIDC_ISSUER is .*must be the issuer of one tenant/);
      const tenant = 'https://login.microsoftonline.com/3f2c1f6e-8f0a-4f0e-9c1d-5b1f5f2b7a10/v2.0';
      expect(loadConfig({ ...whole, OIDC_ISSUER: tenant }).oidc?.issuer).toBe(tenant);
    },
  );

  it('takes the secret from a file (CONFIG-20, CONFIG-21)', () => {
    const file = join(folder, 'secret');
    writeFileSync(file, `${secret}\n`, { mode: 0o600 });
    const { OIDC_CLIENT_SECRET: _, ...others } = whole;
    expect(loadConfig({ ...others, OIDC_CLIENT_SECRET_FILE: file }).oidc?.clientSecret.expose()).toBe(secret);
    expect(apiError({ ...whole, OIDC_CLIENT_SECRET_FILE: file })).toContain('both set');
  });

  it.each(Object.keys(whole))(
    'stops the start with one line where %s alone is missing (CONFIG-20, CONFIG-24)',
    (name) => {
      const line = apiError({ ...whole, [name]: '' });
      expect(line).toMatch(new RegExp(`^StartupError: ${name} is not set: [^\\n]+$`));
      expect(line).not.toContain(secret);
    },
  );

  it.each(Object.entries(whole))('stops it where %s alone is set (CONFIG-20, CONFIG-24)', (name, value) => {
    const line = apiError({ [name]: value });
    expect(line).toMatch(/^StartupError: OIDC_[A-Z_]+ is not set: [^\n]+$/);
    expect(line).not.toContain(secret);
  });

  it.each([
    'http://id.example.com',
    'http://10.0.0.7',
    'http://localhost.example.com',
    'http://127.0.0.1.example.com',
    'http://localhost@example.com',
    'https://id.example.com?a=b',
    'https://id.example.com#a',
    'id.example.com',
  ])('stops it at the issuer %s (CONFIG-20, CONFIG-24)', (issuer) => {
    expect(apiError({ ...whole, OIDC_ISSUER: issuer })).toMatch(
      /^StartupError: OIDC_ISSUER is [^\n]+: it must [^\n]+$/,
    );
  });

  it.each(['http://localhost:8080', 'http://127.0.0.1', 'http://[::1]:9000/a', 'https://id.example.com'])(
    'takes the issuer %s (CONFIG-20)',
    (issuer) => {
      expect(loadConfig({ ...whole, OIDC_ISSUER: issuer }).oidc?.issuer).toBe(issuer);
    },
  );

  it.each(['*', 'com', '@example.com', 'https://example.com', 'example..com'])(
    'stops it at the domain %s (CONFIG-20, CONFIG-24)',
    (domain) => {
      const line = apiError({ ...whole, OIDC_ALLOWED_DOMAINS: `example.com ${domain}` });
      expect(line).toMatch(/^StartupError: OIDC_ALLOWED_DOMAINS is [^\n]+$/);
    },
  );

  it('masks a secret that is too long, and a password in the issuer (CONFIG-24)', () => {
    expect(apiError({ ...whole, OIDC_CLIENT_SECRET: secret.repeat(200) })).toMatch(/^StartupError: OIDC_CLIENT_SECRET/);
    expect(apiError({ ...whole, OIDC_CLIENT_SECRET: secret.repeat(200) })).not.toContain(secret);
    const line = apiError({ ...whole, OIDC_ISSUER: `https://ada:${secret}@id.example.com` });
    expect(line).toContain('OIDC_ISSUER');
    expect(line).not.toContain(secret);
  });
});
