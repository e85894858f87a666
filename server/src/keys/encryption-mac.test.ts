import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StartupError } from '../base/errors.ts';
import { Secret } from '../base/secret.ts';
import { openEncryption } from './encryption.ts';

let dataDir: string;
beforeAll(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'latchkey-encryption-'));
});
afterAll(() => rmSync(dataDir, { recursive: true }));

const open = (key: string | null) => openEncryption({ dataDir, key: key === null ? null : new Secret(key) });
const [one, other] = [open('0f'.repeat(32)), open('f0'.repeat(32))];

describe('mac', () => {
  it('is the same for the same key, purpose and text, in either case of the key (PASSWORD-6)', () => {
    const mac = one.mac('one-time code', 'text');
    expect(mac).toMatch(/^[\w-]{43}$/);
    expect(one.mac('one-time code', 'text')).toBe(mac);
    expect(open('0F'.repeat(32)).mac('one-time code', 'text')).toBe(mac);
  });

  it('is another for another key, purpose or text, however these run together (PASSWORD-6)', () => {
    const macs = [
      one.mac('purpose', 'text'),
      other.mac('purpose', 'text'),
      one.mac('another purpose', 'text'),
      one.mac('purposet', 'ext'),
      one.mac('purpos', 'etext'),
      one.mac('', 'purposetext'),
      one.mac('purpose', ''),
      one.mac('purpose', 'text '),
      one.mac('purpose', 'Text'),
      one.mac('purpose', 'text\0'),
    ];
    expect(new Set(macs).size).toBe(macs.length);
  });
});

describe('encrypt and decrypt', () => {
  const text = new Secret('geheim: €🔑');

  it('gives the text back to the same key and purpose, and to no other (AUDIT-6)', async () => {
    const encrypted = await one.encrypt('smtp', text);
    expect(encrypted).not.toContain('geheim');
    expect((await one.decrypt('smtp', encrypted))?.expose()).toBe(text.expose());
    expect((await open('0f'.repeat(32)).decrypt('smtp', encrypted))?.expose()).toBe(text.expose());
    expect(await one.decrypt('oidc', encrypted)).toBeNull();
    expect(await other.decrypt('smtp', encrypted)).toBeNull();
  });

  it('never says whether two texts are one (AUDIT-6)', async () => {
    expect(await one.encrypt('smtp', text)).not.toBe(await one.encrypt('smtp', text));
  });

  it('null: what was altered anywhere, cut off or never encrypted (AUDIT-6)', async () => {
    const encrypted = await one.encrypt('smtp', text);
    const parts = encrypted.split('.');
    for (const place of [0, 2, 3, 4]) {
      const part = parts[place] ?? '';
      const altered = [...parts];
      altered[place] = (part.startsWith('A') ? 'B' : 'A') + part.slice(1);
      expect(await one.decrypt('smtp', altered.join('.'))).toBeNull();
    }
    for (const wrong of ['', 'x', '....', encrypted.slice(0, -3), `${encrypted}.x`]) {
      expect(await one.decrypt('smtp', wrong)).toBeNull();
    }
  });
});

describe('the key that is made at the first start', () => {
  it('is its owner’s alone, and stays (CONFIG-7)', async () => {
    const encrypted = await open(null).encrypt('smtp', new Secret('x'));
    const file = join(dataDir, 'encryption-key');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
    expect((await open(null).decrypt('smtp', encrypted))?.expose()).toBe('x');
    expect(open(null).mac('a', 'b')).toBe(open(readFileSync(file, 'utf8').trim()).mac('a', 'b'));
  });

  it.each(['', 'x', '0f'.repeat(31), '0f'.repeat(33), 'zz'.repeat(32)])(
    'stops start-up where its file holds %j (CONFIG-7)',
    (content) => {
      writeFileSync(join(dataDir, 'encryption-key'), content, { mode: 0o600 });
      expect(() => open(null)).toThrow(StartupError);
      expect(() => open(null)).toThrow(/encryption-key is damaged: restore it from a backup$/);
    },
  );
});
