import type { Readable } from 'node:stream';
import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { flag, storeOptions, text } from '../options.ts';
import type { RuntimeContext } from '../runtime-context.ts';

const passwordBytesMax = 10_000;

/** Returns the first line of the standard input. */
async function readPassword(stdin: Readable): Promise<string> {
  let given = '';
  for await (const chunk of stdin) {
    given += String(chunk);
    if (given.length > passwordBytesMax || given.includes('\n')) break;
  }
  const [line = ''] = given.split(/\r?\n/);
  if (line === '') throw new CommandError('usage', '--password-stdin: the standard input is empty');
  return line;
}

async function askPassword({ askSecret }: RuntimeContext): Promise<string> {
  const password = await askSecret('Password of the administrator (not shown): ');
  if (password === null) {
    throw new CommandError('usage', 'the password is missing: give it on the standard input with --password-stdin');
  }
  if ((await askSecret('The same again: ')) !== password) throw new CommandError('refused', 'The passwords differ');
  return password;
}

/** Returns an option, or the reply to its question at a terminal. */
async function given(value: string | null, { ask }: RuntimeContext, [flagName, question]: readonly [string, string]) {
  const reply = value ?? (await ask(`${question}: `))?.trim() ?? '';
  if (reply === '') throw new CommandError('usage', `${flagName} is missing`);
  return reply;
}

/** Names of the input in the words of the options. */
const optionOf: Readonly<Record<string, string>> = {
  contactEmail: '--email',
  registeredName: '--name',
  adminFullName: '--full-name',
  password: 'The password',
};

/** Rule: FIT-106. */
export const orgCreate = command({
  name: 'org create',
  summary: 'Create the organization with its first administrator',
  details:
    'Once for each store, as POST /api/v1/org does. Start the server first, which makes the store. At a terminal it asks ' +
    'for what is not given, and for the password without showing it.',
  examples: [
    'org create',
    "org create --name 'Example Ltd' --email ada@example.com --full-name 'Ada Lovelace' --password-stdin --json",
  ],
  options: {
    ...storeOptions,
    name: text('name', 'name of the organization'),
    email: text('address', 'with which the administrator signs in; the part after the @ becomes the domain'),
    fullName: text('name', 'name of the administrator'),
    passwordStdin: flag("read the administrator's password from the first line of the standard input"),
  },
  async run({ dataDir, name, email, fullName, passwordStdin }, context) {
    const { operator, withStore } = await import('../operator-store.ts');
    const { readOrganizationState, setUpOrganization } = await import('../../../server/src/features/org/public.ts');
    const { passwordHasher } = await import('../../../server/src/access/passwords.ts');
    const organization = await withStore(context, dataDir, async (services) => {
      // Before anything is asked.
      if (await readOrganizationState(services.db.read)) {
        throw new CommandError('refused', 'This store has an organization already: latchkey org status shows it');
      }
      const profile = {
        accountType: 'business',
        registeredName: await given(name, context, ['--name', 'Name of the organization']),
        adminFullName: await given(fullName, context, ['--full-name', 'Your name']),
        contactEmail: await given(email, context, ['--email', 'Your e-mail address, with which you sign in']),
      };
      const password = passwordStdin ? await readPassword(context.stdin) : await askPassword(context);
      const { hash } = await passwordHasher();
      return setUpOrganization({ ...services, hash }, { ...profile, password }, operator);
    });
    if (typeof organization === 'string') {
      throw new CommandError(
        'refused',
        organization.replace(/^\w+/, (field) => optionOf[field] ?? field),
      );
    }
    const lines = [
      `Created ${organization.registeredName ?? organization.slug}, with the administrator ${organization.contactEmail}.`,
      'Next: sign in, and create a personal access token, as the README shows.',
    ];
    return { data: { organization }, text: lines.join('\n') };
  },
});
