import { existsSync } from 'node:fs';
import { toTimestamp } from '../../../server/src/base/clock.ts';
import type { Secret } from '../../../server/src/base/secret.ts';
import { type Config, variables } from '../../../server/src/config/config.ts';
import { holdDataDir } from '../../../server/src/db/files/data-dir.ts';
import {
  type Encryption,
  encryptionKeyFile,
  openEncryption,
  readEncryptionKey,
} from '../../../server/src/keys/encryption.ts';
import { encryptAnew, type Reencryption, rotateEncryptionKey } from '../../../server/src/keys/rotate-encryption.ts';
import { keysInFile, keysInStore, rotateSigningKeys } from '../../../server/src/keys/rotate-keys.ts';
import type { Outcome } from '../command.ts';
import { CommandError } from '../failures.ts';
import { operator, withConfiguredStore } from '../operator-store.ts';

/** The encryption that the servers have; none is made here. */
function presentEncryption({ dataDir, encryptionKey: key }: Config): Encryption {
  if (key || existsSync(`${dataDir}/${encryptionKeyFile}`)) return openEncryption({ dataDir, key });
  throw new CommandError('failed', 'ENCRYPTION_KEY is not set: give this command the one that the servers have');
}

/** Rule: AUTH-59. */
export async function rotateSigning(config: Config): Promise<Outcome> {
  if (config.jwtSharedSecret) {
    throw new CommandError(
      'refused',
      'With JWT_ALGORITHM HS256 the key is JWT_SECRET: change it for the servers, and for all who verify tokens',
    );
  }
  const rotated = await withConfiguredStore(config, (services) => {
    const home = services.db.isShared ? keysInStore(presentEncryption(config)) : keysInFile(config.dataDir);
    return rotateSigningKeys(services, home, operator);
  });
  if (rotated === 'underway') {
    throw new CommandError('refused', 'The key of the last rotation does not sign yet: wait two minutes');
  }
  const { kid, kept, dropped } = rotated;
  const signsFrom = toTimestamp(rotated.signsFromMs);
  const text = [
    `The new key ${kid} is published and signs from ${signsFrom}; servers take it up by themselves.`,
    `Earlier keys: ${kept} published until no token needs them, ${dropped} let go`,
  ];
  return { data: { signing: { kid, signsFrom, kept, dropped } }, text: text.join('\n') };
}

function readNewKey(file: string): Secret {
  const raw = existsSync(file) ? readEncryptionKey(file) : null;
  if (raw === null) throw new CommandError('failed', `The key file ${file} is not there`);
  const parsed = variables.shape.ENCRYPTION_KEY.safeParse(raw.expose());
  if (parsed.data) return parsed.data;
  throw new CommandError('failed', `The key in ${file} ${parsed.error?.issues[0]?.message ?? 'must be given'}`);
}

interface Input {
  readonly newKeyFile: string | null;
  readonly nodesStopped: boolean;
}

async function encryptWith(config: Config, newKeyFile: string | null): Promise<Reencryption> {
  const from = config.encryptionKey;
  if (from === null && newKeyFile === null) {
    return withConfiguredStore(config, (services) => rotateEncryptionKey(services, config.dataDir, operator));
  }
  if (from === null || newKeyFile === null) {
    const problem =
      'where ENCRYPTION_KEY holds the present key, the new one is given in --new-key-file, and only there';
    throw new CommandError('usage', problem);
  }
  const to = readNewKey(newKeyFile);
  if (to.expose().toLowerCase() === from.expose().toLowerCase()) {
    throw new CommandError('refused', 'The new key is the present one: generate another, e.g. openssl rand -hex 32');
  }
  return withConfiguredStore(config, (services) => encryptAnew(services, { from, to }, operator));
}

/** Rule: AUDIT-15. */
export async function rotateEncryption(config: Config, { newKeyFile, nodesStopped }: Input): Promise<Outcome> {
  if (config.databaseUrl && !nodesStopped) {
    throw new CommandError(
      'refused',
      'No node may run meanwhile: stop all of them and confirm it with --nodes-stopped',
    );
  }
  const hold = existsSync(config.dataDir) ? holdDataDir(config.dataDir) : null;
  try {
    const { encrypted, unreadable } = await encryptWith(config, newKeyFile);
    const next =
      newKeyFile === null ? 'The new key is in the data directory.' : 'Set ENCRYPTION_KEY to the new key now.';
    const lost = unreadable === 0 ? '' : `\nValues that no key reads, left as they were: ${unreadable}`;
    return {
      data: { encryption: { encrypted, unreadable } },
      text: `Values that are encrypted with the new key: ${encrypted}. ${next}${lost}`,
    };
  } finally {
    hold?.release();
  }
}
