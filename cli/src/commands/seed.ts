import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { flag, storeOptions, text, wholeNumber } from '../options.ts';

const most = 1_000_000;

async function readPassword(file: string | null): Promise<string | null> {
  if (file === null) return null;
  const { readFile } = await import('node:fs/promises');
  const { newPassword } = await import('../../../server/src/access/password-rules.ts');
  const { weaknessOf, wordsOf: textOf } = await import('../../../server/src/access/password-strength.ts');
  const content = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new CommandError('failed', `The password file ${file} cannot be read`, { cause: error });
  });
  const parsed = newPassword.safeParse(content.replace(/\r?\n$/, ''));
  const problem = parsed.success
    ? await weaknessOf(parsed.data, textOf(['Example Administrator']))
    : (parsed.error.issues[0]?.message ?? 'is not allowed');
  if (parsed.success && problem === null) return parsed.data;
  throw new CommandError('refused', `The password in ${file} ${problem}`);
}

/** Rule: CLI-10. */
export const seed = command({
  name: 'seed',
  summary: 'Fill a store with generated users, groups and tokens, for trials and benchmarks',
  details:
    'Creates the store and an organization with the administrator admin@example.com where there are none, and prints the ' +
    'password that it generated for the administrator, once. The generated users have no password, and no one has their ' +
    'tokens. May run while a server runs. Do not use it on a store that matters: the generated users cannot be recognized later.',
  examples: ['seed --users 1000 --data-dir /tmp/latchkey', 'seed --users 100000 --tokens 50000 --print-token --json'],
  options: {
    ...storeOptions,
    users: wholeNumber({ description: 'how many users', min: 1, max: most, otherwise: null }),
    groups: wholeNumber({ description: 'how many user groups', min: 0, max: 1_000, otherwise: 5 }),
    tokens: wholeNumber({ description: 'how many personal access tokens', min: 0, max: most, otherwise: 0 }),
    seed: wholeNumber({ description: 'another number generates other users', min: 0, max: most, otherwise: 1 }),
    passwordFile: text('file', "the new administrator's password, instead of one that is printed"),
    printToken: flag('create a usable token for an administrator, valid for 30 days, and print it once'),
  },
  async run({ dataDir, passwordFile, printToken, ...counts }, context) {
    const password = await readPassword(passwordFile);
    const { operatorConfig } = await import('../operator-store.ts');
    const { seedStore } = await import('../seed/seed-store.ts');
    const config = operatorConfig(context, dataDir);
    const startedMs = performance.now();
    const seeded = await seedStore(config, { ...counts, password, token: printToken }, context.progress);
    const seconds = Number(((performance.now() - startedMs) / 1_000).toFixed(1));
    // A password that the operator gave is not printed.
    const made = { ...seeded, password: password === null ? seeded.password : null };
    const { users, groups, tokens } = counts;
    const lines = [
      `Added to ${seeded.organization}: ${users} users, ${groups} groups, ${tokens} tokens, in ${seconds} s`,
      ...(seeded.isNew ? ['Administrator: admin@example.com'] : []),
      ...(made.password === null ? [] : [`Password (shown only here): ${made.password}`]),
      ...(made.token === null ? [] : [`Token (shown only here): ${made.token}`]),
    ];
    return { data: { ...made, users, groups, tokens, seconds }, text: lines.join('\n') };
  },
});
