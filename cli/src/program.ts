import { CommanderError, Option as CommanderOption, Command as Parser } from 'commander';
import { release } from '../../server/src/base/release.gen.ts';
import type { Command, Outcome } from './command.ts';
import { CommandError } from './failures.ts';
import { flagOf } from './options.ts';

const description =
  "Latchkey's command for its operator. It works on the data directory itself, whether the server runs or not.";
const exitCodesText = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 rejected by a rule.`;

/** Descriptions of the first words of commands. */
const nouns: Readonly<Record<string, string>> = {
  admin: 'Administrators: the way back in',
  audit: 'The audit log: verifying, exporting',
  completion: 'Completion of command lines, for shells',
  import: 'Import users of a CSV file, or the dump of another deployment',
  keys: 'The keys that tokens are signed and settings encrypted with: changing them',
  org: 'The organization: creating, its state, restoring, purging',
  service: 'Services that get scoped tokens: registering, listing, ending',
  token: 'Personal access tokens of all users: list, revoke',
  user: 'Users: unlinking them, erasing their data',
};

type RunCommand = (command: Command, given: Readonly<Record<string, string | boolean>>) => Promise<Outcome | null>;

/** Output and execution of a command line. */
interface Speaker {
  readonly print: (text: string) => void;
  /** Runs the command that was called. */
  readonly run: (command: Command, given: Readonly<Record<string, string | boolean>>) => Promise<void>;
}

/** Accepted at every level, and read where results are printed. */
const json = new CommanderOption('--json', 'print the result as one line of JSON; errors too, on the standard error');

function parserOf(parent: Parser, word: string, summary: string): Parser {
  return (
    parent.commands.find((known) => known.name() === word) ??
    parent.command(word).summary(summary).description(summary).helpCommand(false).addOption(json)
  );
}

function addCommand(parent: Parser, declared: Command, { run }: Speaker): void {
  const words = declared.name.split(' ');
  const [first = '', second] = words;
  const above = second === undefined ? parent : parserOf(parent, first, nouns[first] ?? '');
  const parser = parserOf(above, second ?? first, declared.summary).description(
    `${declared.summary}.\n\n${declared.details}`,
  );
  const named: string[] = [];
  for (const [name, { placeholder, description, isArgument }] of Object.entries(declared.options)) {
    if (isArgument) {
      named.push(name);
      parser.argument(`<${placeholder}>`, description);
      continue;
    }
    const value = placeholder === null ? '' : ` <${placeholder}>`;
    parser.addOption(new CommanderOption(flagOf(name) + value, description));
  }
  const examples = declared.examples.map((example) => `  $ latchkey ${example}`).join('\n');
  parser.addHelpText('after', `\nExamples:\n${examples}\n${exitCodesText}`);
  parser.action(async () => {
    const unnamed = named.map((name, place) => [name, parser.args[place] ?? ''] as const);
    const given = { ...parser.opts<Record<string, string | boolean>>(), ...Object.fromEntries(unnamed) };
    return run(declared, given);
  });
}

function createParser(commands: readonly Command[], speaker: Speaker): Parser {
  const parser = new Parser('latchkey').description(description).exitOverride().helpCommand(false).addOption(json);
  // Fixed, so that help is the same wherever it is printed.
  parser.configureHelp({ helpWidth: 100, sortSubcommands: true });
  // Errors are thrown, and printed by the caller.
  parser.configureOutput({ writeOut: speaker.print, writeErr: () => {} });
  parser.version(release, '--version', 'print the version of this release');
  for (const declared of commands) addCommand(parser, declared, speaker);
  parser.addHelpText('after', exitCodesText);
  return parser;
}

/** Converts an error of the command line: the library's message, and where to read on. */
function usageError(error: CommanderError): CommandError {
  const message = error.code === 'commander.help' ? 'name a command' : error.message.replace(/^error: /, '');
  return new CommandError('usage', `${message.replaceAll('\n', ' ')}; see latchkey --help`, { cause: error });
}

/**
 * Finds the command that `args` name, parses its options and runs it.
 * @returns its outcome, or `null` when there is nothing to print: help was printed, or the command has printed
 * everything itself. Throws CommandError for a wrong command line.
 */
export async function runProgram(
  commands: readonly Command[],
  args: readonly string[],
  { print, run }: { readonly print: (text: string) => void; readonly run: RunCommand },
): Promise<Outcome | null> {
  let outcome: Outcome | null = null;
  const speaker: Speaker = {
    print,
    run: async (command, given) => {
      outcome = await run(command, given);
    },
  };
  try {
    await createParser(commands, speaker).parseAsync([...args], { from: 'user' });
    return outcome;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return null;
    throw usageError(error);
  }
}
