import { command } from '../command.ts';
import { argument, flag, storeOptions } from '../options.ts';

/** Rules: CLI-16, CLI-18, CLI-19. */
export const importUsers = command({
  name: 'import users',
  summary: 'Bring the people of a CSV file in',
  details:
    'The first line names the columns: email, and any of fullName, firstName, middleName, lastName, mobile, designation, ' +
    'addressLine1, city, state, country, postCode, groups (names, separated by semicolons) and role (admin or member). ' +
    'Whoever has the address is changed, whoever is new is created; an empty cell changes nothing, and nobody is taken out ' +
    'of a group. While there is a problem in the file nothing is written. A second run changes nothing. May run beside a server.',
  examples: ['import users people.csv --dry-run', 'import users people.csv --create-groups --json'],
  options: {
    file: argument('file', 'CSV in UTF-8, with commas'),
    ...storeOptions,
    dryRun: flag('tell what would be done, and write nothing'),
    skipInvalid: flag('leave out the lines that have a problem, and import the others'),
    createGroups: flag('make the groups that the file names and that are not there yet'),
  },
  async run({ file, dataDir, dryRun, skipInvalid, createGroups }, surroundings) {
    const { operatorConfig } = await import('../operator-store.ts');
    const { runImport } = await import('../import/run-import.ts');
    const { readCsvPeople } = await import('../import/csv-people.ts');
    return runImport(operatorConfig(surroundings, dataDir), surroundings, {
      file,
      isDry: dryRun,
      isSkippingInvalid: skipInvalid,
      isMakingGroups: createGroups,
      mayFound: false,
      stage: (staging) => readCsvPeople(file, staging, surroundings.progress),
    });
  },
});
