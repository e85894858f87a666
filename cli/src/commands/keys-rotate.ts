import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { flag, storeOptions, text } from '../options.ts';

/** Rules: AUTH-59, AUDIT-15. */
export const keysRotate = command({
  name: 'keys rotate',
  summary: 'Rotate the key that signs tokens, or the one that encrypts stored settings',
  details:
    'The signing key: may run while servers run, which publish the new key at once and sign with it two minutes later. The ' +
    'earlier keys stay published until the last token that they signed has ended. With --encryption, the ' +
    'encryption key: no server may run. Everything that is stored encrypted is encrypted again in one transaction; ' +
    'whatever ends it half way, the store works with the old key or with the new one. Where ENCRYPTION_KEY holds the ' +
    'present key, give the new one in --new-key-file, and set ENCRYPTION_KEY to it afterwards.',
  examples: [
    'keys rotate',
    'keys rotate --encryption --data-dir /var/lib/latchkey',
    'keys rotate --encryption --new-key-file /run/secrets/new-key --nodes-stopped',
  ],
  options: {
    ...storeOptions,
    encryption: flag('change the encryption key'),
    newKeyFile: text(
      'file',
      'holds the new encryption key, 64 hexadecimal digits, where ENCRYPTION_KEY holds the present',
    ),
    nodesStopped: flag('with DATABASE_URL: every node is stopped, which cannot be seen from here'),
  },
  async run({ dataDir, encryption, newKeyFile, nodesStopped }, context) {
    if (!encryption && (newKeyFile !== null || nodesStopped)) {
      throw new CommandError('usage', '--new-key-file and --nodes-stopped are for --encryption');
    }
    const { operatorConfig } = await import('../operator-store.ts');
    const { rotateEncryption, rotateSigning } = await import('../keys/rotation.ts');
    const config = operatorConfig(context, dataDir);
    return encryption ? rotateEncryption(config, { newKeyFile, nodesStopped }) : rotateSigning(config);
  },
});
