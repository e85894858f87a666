import { command } from '../command.ts';
import { argument, flag, storeOptions } from '../options.ts';

/** Rules: CLI-17 to CLI-20. */
export const importDump = command({
  name: 'import dump',
  summary: 'Import the dump of another deployment, with tokens that continue to work',
  details:
    'A JSON object with the arrays users, userGroups, personalAccessTokens and userCredentials, and perhaps organization; ' +
    'or JSON Lines, each { "collection", "document" }, of any length. Ids are kept. Tokens come as their SHA-256; a token ' +
    'itself is refused. Where there is no organization yet, the one of the file is created, with an administrator. What is ' +
    'here already changes only where the file has it newer. While there is a problem in the file nothing is written. A ' +
    'second run changes nothing. May run while a server runs.',
  examples: ['import dump dump.jsonl --dry-run', 'import dump dump.json --skip-invalid --json'],
  options: {
    file: argument('file', 'JSON or JSON Lines, in UTF-8'),
    ...storeOptions,
    dryRun: flag('report what would be done, and write nothing'),
    skipInvalid: flag('leave out the documents that have a problem, and import the others'),
  },
  async run({ file, dataDir, dryRun, skipInvalid }, context) {
    const { operatorConfig } = await import('../operator-store.ts');
    const { runImport } = await import('../import/run-import.ts');
    const { stageDump } = await import('../import/stage-dump.ts');
    return runImport(operatorConfig(context, dataDir), context, {
      file,
      isDry: dryRun,
      isSkippingInvalid: skipInvalid,
      isMakingGroups: false,
      mayCreateOrganization: true,
      stage: (staging) => stageDump(file, staging, context.progress),
    });
  },
});
