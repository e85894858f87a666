import { StartupError } from '../../server/src/base/errors.ts';
import { commands } from './commands.ts';
import { CommandError, exitCodes, type FailureKind } from './failures.ts';
import { runProgram } from './program.ts';
import type { Surroundings } from './surroundings.ts';

/** Where a command line is answered. */
interface Answering {
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

function kindOf(error: unknown): FailureKind {
  return error instanceof CommandError ? error.kind : 'failed';
}

/** One line for the operator; the stack only of what nobody foresaw. */
async function messageOf(error: unknown, wantsJson: boolean): Promise<string> {
  if (error instanceof CommandError || error instanceof StartupError) return error.message;
  const { isStoreFailure } = await import('../../server/src/db/failures.ts');
  const { message } = error instanceof Error ? error : { message: String(error) };
  if (isStoreFailure(error)) return `The store cannot be used right now: ${message}`;
  return error instanceof Error && error.stack !== undefined && !wantsJson ? error.stack : message;
}

async function told(error: unknown, wantsJson: boolean): Promise<string> {
  const message = await messageOf(error, wantsJson);
  const more = error instanceof CommandError ? error.more : {};
  if (wantsJson) return JSON.stringify({ error: { code: kindOf(error).toUpperCase(), message, ...more } });
  const below = error instanceof CommandError && error.words !== null ? `\n${error.words}` : '';
  return `latchkey: ${message}${below}`;
}

/** Runs a command line and answers the exit code; says all there is to say on the way. Never throws. */
export async function runCommandLine(
  args: readonly string[],
  surroundings: Surroundings,
  { print, printError }: Answering,
): Promise<number> {
  // Asked of the words themselves: a command line that cannot be read is answered in JSON, too.
  const wantsJson = args.includes('--json');
  try {
    const outcome = await runProgram(commands, args, {
      print,
      run: (command, given) => command.run(given, surroundings),
    });
    if (outcome !== null) print(`${wantsJson ? JSON.stringify(outcome.data) : outcome.words}\n`);
    return 0;
  } catch (error) {
    printError(`${await told(error, wantsJson)}\n`);
    return exitCodes[kindOf(error)];
  }
}
