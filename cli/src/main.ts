import { StartupError } from '../../server/src/errors.ts';
import { commands } from './commands.ts';
import { CommandError, exitCodes, type FailureKind } from './failures.ts';
import { runProgram } from './program.ts';
import { processSurroundings } from './surroundings.ts';

/** Asked of the words themselves: a command line that cannot be read is answered in JSON, too. */
const wantsJson = process.argv.includes('--json');

function kindOf(error: unknown): FailureKind {
  return error instanceof CommandError ? error.kind : 'failed';
}

/** One line for the operator; the stack only of what nobody foresaw. */
async function messageOf(error: unknown): Promise<string> {
  if (error instanceof CommandError || error instanceof StartupError) return error.message;
  const { isStoreFailure } = await import('../../server/src/db/failures.ts');
  const { message } = error instanceof Error ? error : { message: String(error) };
  if (isStoreFailure(error)) return `The store cannot be used right now: ${message}`;
  return error instanceof Error && error.stack !== undefined && !wantsJson ? error.stack : message;
}

async function fail(error: unknown): Promise<void> {
  const kind = kindOf(error);
  const message = await messageOf(error);
  const more = error instanceof CommandError ? error.more : {};
  const told = { error: { code: kind.toUpperCase(), message, ...more } };
  const below = error instanceof CommandError && error.words !== null ? `\n${error.words}` : '';
  const line = wantsJson ? JSON.stringify(told) : `latchkey: ${message}${below}`;
  process.stderr.write(`${line}\n`);
  process.exitCode = exitCodes[kind];
}

async function main(): Promise<void> {
  // Whatever is written is its owner's alone.
  process.umask(0o077);
  const surroundings = processSurroundings(process.env);
  const print = (text: string) => void process.stdout.write(text);
  const outcome = await runProgram(commands, process.argv.slice(2), {
    print,
    run: (command, given) => command.run(given, surroundings),
  });
  if (outcome !== null) print(`${wantsJson ? JSON.stringify(outcome.data) : outcome.words}\n`);
}

// Whoever read what is printed may go away.
process.stdout.on('error', () => {});
main().catch(fail);
