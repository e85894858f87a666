import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { catalogue } from '../access/scopes.ts';
import { loadConfig } from './load-config.ts';

const good = 'kX9vQ2mZ7pL4wR8tB1nC6yD3sF5gH0jA';
const other = 'Zr4uT8yB2nM6kW0qE9aS3dF7gH1jK5lP';

describe('secrets that are shared with others', () => {
  const placeholders = [
    'change-me-change-me-change-me-change-me',
    'changeme changeme changeme 0123456789',
    'your-secret-goes-here-0123456789-abcdef',
    'your_secret_key_of_at_least_32_characters',
    'example-0123456789-abcdefghijklmnopqrst',
    'super-password-0123456789-abcdefghijkl',
    'secret-0123456789-abcdefghijklmnopqrstu',
    'insert here a long text of your own choosing',
    'PLACEHOLDER-0123456789-abcdefghijklmnop',
    'dummy-0123456789-abcdefghijklmnopqrstuv',
  ];
  for (const name of ['JWT_SECRET', 'SCOPED_JWT_SECRET']) {
    it.each(placeholders)(`${name}: refuses the placeholder %s and does not show it (AUTH-39, CONFIG-24)`, (value) => {
      const line = `${name} is [secret]: it must not be a placeholder: generate one, e.g. openssl rand -hex 32`;
      expect(() => loadConfig({ [name]: value })).toThrow(line);
    });

    it(`${name}: refuses what is too short or repeats itself (AUTH-39, CONFIG-6)`, () => {
      for (const value of ['x', '0123456789', good.slice(1), 'é'.repeat(15)]) {
        expect(() => loadConfig({ [name]: value })).toThrow(`${name} is [secret]: it must be at least 32 bytes`);
      }
      for (const value of ['a'.repeat(64), 'abcabcabc'.repeat(8), '0'.repeat(32)]) {
        expect(() => loadConfig({ [name]: value })).toThrow(`${name} is [secret]: it must not repeat a few characters`);
      }
    });

    it(`${name}: takes random ones of 32 bytes, hexadecimal and base64 (CONFIG-6)`, () => {
      const hex = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
      for (const value of [good, hex, Buffer.from(hex, 'hex').toString('base64')]) {
        expect(() => loadConfig({ [name]: value })).not.toThrow();
      }
    });
  }

  it('HS256 needs JWT_SECRET; an empty one is none (AUTH-39, CONFIG-5)', () => {
    for (const environment of [{}, { JWT_SECRET: '' }]) {
      expect(() => loadConfig({ JWT_ALGORITHM: 'HS256', ...environment })).toThrow(
        'JWT_SECRET is not set: with JWT_ALGORITHM HS256 it must be at least 32 bytes',
      );
    }
    expect(loadConfig({ JWT_ALGORITHM: 'HS256', JWT_SECRET: good }).jwtSharedSecret?.expose()).toBe(good);
  });

  it('refuses the same secret for both uses, whichever way they are signed (AUTH-39)', () => {
    for (const JWT_ALGORITHM of ['EdDSA', 'HS256']) {
      expect(() => loadConfig({ JWT_ALGORITHM, JWT_SECRET: good, SCOPED_JWT_SECRET: good })).toThrow(
        'JWT_SECRET and SCOPED_JWT_SECRET hold the same secret: they must differ',
      );
      expect(() => loadConfig({ JWT_ALGORITHM, JWT_SECRET: good, SCOPED_JWT_SECRET: other })).not.toThrow();
    }
  });
});

describe('the key that stored settings are encrypted with', () => {
  const key = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

  it('takes 64 hexadecimal digits in either case; without any there is none (CONFIG-7)', () => {
    for (const value of [key, key.toUpperCase()]) {
      expect(loadConfig({ ENCRYPTION_KEY: value }).encryptionKey?.expose()).toBe(value);
    }
    for (const environment of [{}, { ENCRYPTION_KEY: '' }]) expect(loadConfig(environment).encryptionKey).toBeNull();
  });

  it.each([key.slice(1), `${key}0`, `${key.slice(1)}g`, `0x${key.slice(2)}`, good, `${key}\n${key}`])(
    'refuses anything else, and does not show it: %s (CONFIG-7, CONFIG-24)',
    (value) => {
      expect(() => loadConfig({ ENCRYPTION_KEY: value })).toThrow(
        /^ENCRYPTION_KEY is \[secret\]: it must be 64 hexadecimal digits: generate them, e\.g\. openssl rand -hex 32$/,
      );
    },
  );

  it('refuses one that no one generated (CONFIG-7)', () => {
    for (const value of ['0'.repeat(64), '0123'.repeat(16)]) {
      expect(() => loadConfig({ ENCRYPTION_KEY: value })).toThrow(
        'ENCRYPTION_KEY is [secret]: it must not repeat a few digits',
      );
    }
  });
});

describe('the scopes that may be granted', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  function scopesFile(content: unknown): string {
    const path = join(directory, 'scopes.json');
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  }
  const report = { name: 'report:read', description: 'See reports', category: 'Reports' };
  const invoice = {
    name: 'org:invoice',
    description: 'See invoices',
    category: 'Organization',
    requiresUserConsent: false,
  };

  it('MCP_SCOPES narrows the catalogue, with commas, spaces or both, in the order of the catalogue (CONFIG-9, SCOPE-8)', () => {
    const names = (MCP_SCOPES: string) => [...loadConfig({ MCP_SCOPES }).scopes.names];
    expect(names('user:read org:read')).toEqual(['org:read', 'user:read']);
    expect(names('user:read,org:read')).toEqual(['org:read', 'user:read']);
    expect(names(' token:write ,\n openid,,user:read user:read ')).toEqual(['openid', 'user:read', 'token:write']);
    expect(names(catalogue.map(({ name }) => name).join(' '))).toEqual(catalogue.map(({ name }) => name));
  });

  it('MCP_SCOPES refuses a name that is unknown here (CONFIG-9, CONFIG-24)', () => {
    const line = (MCP_SCOPES: string) => () => loadConfig({ MCP_SCOPES });
    expect(line('org:read org:everything')).toThrow(
      'MCP_SCOPES names "org:everything": it must name scopes of the catalogue',
    );
    expect(line('ORG:READ')).toThrow('MCP_SCOPES names "ORG:READ"');
    expect(line('org:read;user:read')).toThrow('MCP_SCOPES names "org:read;user:read"');
  });

  it('SCOPES_FILE adds scopes, in their category, which ask for consent unless it says no (SCOPE-7, CONFIG-9)', () => {
    const { scopes } = loadConfig({ SCOPES_FILE: scopesFile([report, invoice]) });
    expect(scopes.infos).toHaveLength(catalogue.length + 2);
    expect(scopes.infos.at(-1)).toEqual({ ...report, requiresUserConsent: true });
    const names = scopes.infos.map(({ name }) => name);
    expect(names.indexOf('org:invoice')).toBe(names.indexOf('org:admin') + 1);
    expect(scopes.infos.find(({ name }) => name === 'org:invoice')).toEqual(invoice);
  });

  it('MCP_SCOPES may name what SCOPES_FILE added (SCOPE-7, SCOPE-8)', () => {
    const { scopes } = loadConfig({ SCOPES_FILE: scopesFile([report]), MCP_SCOPES: 'report:read org:read' });
    expect([...scopes.names]).toEqual(['org:read', 'report:read']);
  });

  it('SCOPES_FILE refuses what is no list of scopes, and a name twice (CONFIG-24)', () => {
    const line = (content: unknown) => () => loadConfig({ SCOPES_FILE: scopesFile(content) });
    expect(() => loadConfig({ SCOPES_FILE: join(directory, 'none') })).toThrow(
      /^SCOPES_FILE names .* cannot be read \(ENOENT\)$/,
    );
    expect(line('[{')).toThrow(/scopes\.json is not valid JSON$/);
    const wrong = [
      {},
      'x',
      [{}],
      ['x'],
      [{ ...report, name: 'two words' }],
      [{ ...report, name: '' }],
      [{ ...report, description: '' }],
    ];
    for (const content of wrong) expect(line(JSON.stringify(content))).toThrow(/scopes\.json must be a JSON list of/);
    expect(line([{ ...report, name: 'org:read' }])).toThrow(/names a scope that exists already$/);
    expect(line([report, report])).toThrow(/names a scope that exists already$/);
  });
});
