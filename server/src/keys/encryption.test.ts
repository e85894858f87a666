import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CompactEncrypt } from 'jose';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StartupError } from '../base/errors.ts';
import { Secret } from '../base/secret.ts';
import { openEncryption } from './encryption.ts';

const hex = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const otherHex = `${hex.slice(1)}9`;
const text = 'Pässwort-4711 {"x":1}';

let dataDir: string;
let file: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  file = join(dataDir, 'encryption-key');
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const open = (key: string | null = hex) => openEncryption({ dataDir, key: key === null ? null : new Secret(key) });
const clear = async (encrypted: string, purpose = 'mail', key: string | null = hex) =>
  (await open(key).decrypt(purpose, encrypted))?.expose() ?? null;

/** The one line that an opening ends with. */
function apiError(key: string | null = null): string {
  try {
    open(key);
  } catch (error) {
    if (error instanceof StartupError && !/[\r\n]/.test(error.message)) return error.message;
    throw error;
  }
  return 'it was opened';
}

describe('encryption of stored settings (AUDIT-6)', () => {
  it('gives the text back, and shows nothing of it before', async () => {
    const { encrypt, decrypt } = open();
    const encrypted = await encrypt('mail', new Secret(text));
    expect((await decrypt('mail', encrypted))?.expose()).toBe(text);
    expect(String(await decrypt('mail', encrypted))).toBe('[secret]');
    const readable = encrypted.split('.').map((part) => Buffer.from(part, 'base64url').toString());
    expect(readable.join() + encrypted).not.toContain('4711');
    expect(JSON.parse(readable[0] ?? '')).toEqual({ alg: 'dir', enc: 'A256GCM', typ: 'mail' });
  });

  it('looks different each time, for the same text too', async () => {
    const { encrypt } = open();
    const made = await Promise.all(Array.from({ length: 20 }, () => encrypt('mail', new Secret(text))));
    for (const place of [2, 3]) expect(new Set(made.map((one) => one.split('.')[place])).size).toBe(20);
  });

  it('is null with another key, and for another purpose', async () => {
    const encrypted = await open().encrypt('mail', new Secret(text));
    expect(await clear(encrypted, 'mail', hex.toUpperCase())).toBe(text);
    expect(await clear(encrypted, 'mail', otherHex)).toBeNull();
    expect(await clear(encrypted, 'mail', null)).toBeNull();
    for (const purpose of ['', 'Mail', 'mails', 'oidc']) expect(await clear(encrypted, purpose)).toBeNull();
  });

  it('is null for whatever was altered, in any part', async () => {
    const encrypted = await open().encrypt('mail', new Secret(text));
    const parts = encrypted.split('.');
    const other = (await open().encrypt('oidc', new Secret(text))).split('.');
    for (const place of [0, 2, 3, 4]) {
      const part = parts[place] ?? '';
      const changed = part.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'));
      for (const put of [changed, part.slice(4), '', other[place] ?? '']) {
        expect(put).not.toBe(part);
        expect(await clear(parts.with(place, put).join('.'))).toBeNull();
      }
    }
    // The header says what it is for; it cannot be exchanged.
    expect(await clear(parts.with(0, other[0] ?? '').join('.'), 'oidc')).toBeNull();
    for (const nothing of ['', 'x', '....', 'null', `${encrypted}.`, parts.slice(1).join('.')]) {
      expect(await clear(nothing)).toBeNull();
    }
  });

  it('is null for what was encrypted in another way, with the same key', async () => {
    const raw = new Uint8Array(Buffer.from(hex, 'hex'));
    const made = (header: { alg: string; enc: string }, key = raw) =>
      new CompactEncrypt(new TextEncoder().encode(text)).setProtectedHeader({ ...header, typ: 'mail' }).encrypt(key);
    expect(await clear(await made({ alg: 'dir', enc: 'A256GCM' }))).toBe(text);
    expect(await clear(await made({ alg: 'dir', enc: 'A128CBC-HS256' }))).toBeNull();
    expect(await clear(await made({ alg: 'A256KW', enc: 'A256GCM' }))).toBeNull();
  });
});

describe('the key of its own (CONFIG-7)', () => {
  it('is made once, of 256 random bits, for its owner alone, whatever the umask', async () => {
    const umask = process.umask(0o000);
    try {
      const encrypted = await open(null).encrypt('mail', new Secret(text));
      const made = readFileSync(file, 'utf8');
      expect(made).toMatch(/^[0-9a-f]{64}\n$/);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(await clear(encrypted, 'mail', null)).toBe(text);
      expect(await clear(encrypted, 'mail', made.trim())).toBe(text);
      expect(readFileSync(file, 'utf8')).toBe(made);
      expect(readdirSync(dataDir)).toEqual(['encryption-key']);
      rmSync(file);
      open(null);
      expect(readFileSync(file, 'utf8')).not.toBe(made);
    } finally {
      process.umask(umask);
    }
  });

  it('is neither made nor looked at where a key is given', () => {
    open();
    expect(existsSync(file)).toBe(false);
    writeFileSync(file, 'damaged', { mode: 0o644 });
    expect(apiError(hex)).toBe('it was opened');
  });

  it.each([0o640, 0o604, 0o620, 0o602, 0o644, 0o666])('refuses a file that others can read or write: %o', (mode) => {
    open(null);
    chmodSync(file, mode);
    expect(apiError()).toBe(
      `The key file ${file} can be read by others: run chmod 600 on it, or replace it if it leaked`,
    );
    chmodSync(file, 0o600);
    expect(apiError()).toBe('it was opened');
  });

  it.each(['', '\n', 'x', hex.slice(1), `${hex}0`, `${hex.slice(1)}g`, `${hex}\n${hex}\n`, `{"key":"${hex}"}`])(
    'refuses a damaged file, says nothing of what it holds, and never replaces it: %j',
    (content) => {
      writeFileSync(file, content, { mode: 0o600 });
      expect(apiError()).toBe(`The key file ${file} is damaged: restore it from a backup`);
      expect(readFileSync(file, 'utf8')).toBe(content);
    },
  );
});
