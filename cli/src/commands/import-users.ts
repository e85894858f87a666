import { command } from '../command.ts';
import { argument, flag, storeOptions } from '../options.ts';

/** Rules: CLI-16, CLI-18, CLI-19. */
export const importUsers = command({
  name: 'import users',
  summary: 'Import the users of a CSV file',
  details:
    'The first line names the columns: email, and any of fullName, firstName, middleName, lastName, mobile, designation, ' +
    'addressLine1, city, state, country, postCode, groups (names, separated by semicolons) and role (admin or member). ' +
    'A user who has the address is updated, a new one is created; an empty cell changes nothing, and no user is removed ' +
    'from a group. While there is a problem in the file nothing is written. A second run changes nothing. May run while a server runs.',
  examples: ['import users people.csv --dry-run', 'import users people.csv --create-groups --json'],
  options: {
    file: argument('file', 'CSV in UTF-8, with commas'),
    ...storeOptions,
    dryRun: flag('report what would be done, and write nothing'),
    skipInvalid: flag('leave out the lines that have a problem, and import the others'),
    createGroups: flag('create the groups that the file names and that do not exist yet'),
  },
  async run({ file, dataDir, dryRun, skipInvalid, createGroups }, context) {
    const { operatorConfig } = await import('../operator-store.ts');
    const { runImport } = await import('../import/run-import.ts');
    const { readCsvUsers } = await import('../import/csv-users.ts');
    return runImport(operatorConfig(context, dataDir), context, {
      file,
      isDry: dryRun,
      isSkippingInvalid: skipInvalid,
      isMakingGroups: createGroups,
      mayCreateOrganization: false,
      stage: (staging) => readCsvUsers(file, staging, context.progress),
    });
  },
});
