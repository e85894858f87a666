import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Secret } from '../../src/base/secret.ts';
import { signingKeyFile, signingKeyPurpose } from '../../src/keys/key-place.ts';
import { secondConnection } from './second-connection.ts';
import type { Json, TestApp } from './test-app.ts';
import { isOnPostgres } from './test-store.ts';

/** The signing keys of a service, which may have been stopped, from where they are kept: a file, or a store of several nodes. */
export async function readSigningKeys(app: TestApp): Promise<Json> {
  if (!isOnPostgres) return JSON.parse(readFileSync(join(app.dataDir, signingKeyFile), 'utf8'));
  const store = secondConnection(app);
  const content = store.prepare('SELECT content FROM shared_keys').pluck().get();
  store.close();
  const keys = await app.services.encryption.decrypt(signingKeyPurpose, content);
  return JSON.parse(keys?.expose() ?? 'null');
}

/** Takes those that nodes share out of their store: one that cannot read them does not start (NODE-7). */
export function dropSharedKeys(app: TestApp): void {
  if (!isOnPostgres) return;
  const store = secondConnection(app);
  store.exec('DELETE FROM shared_keys');
  store.close();
}

/** Puts others in their place. */
export async function writeSigningKeys(app: TestApp, keys: Json): Promise<void> {
  const content = JSON.stringify(keys);
  if (!isOnPostgres) {
    writeFileSync(join(app.dataDir, signingKeyFile), content, { mode: 0o600 });
    return;
  }
  const encrypted = await app.services.encryption.encrypt(signingKeyPurpose, new Secret(content));
  const store = secondConnection(app);
  store.prepare('UPDATE shared_keys SET content = ?').run(encrypted);
  store.close();
}
