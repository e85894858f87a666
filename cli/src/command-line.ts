import { StartupError } from '../../server/src/base/errors.ts';
import { commands } from './commands.ts';
import { CommandError, exitCodes, type FailureKind } from './failures.ts';
import { runProgram } from './program.ts';
import type { RuntimeContext } from './runtime-context.ts';

/** Output of a command line. */
interface Output {
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

function kindOf(error: unknown): FailureKind {
  return error instanceof CommandError ? error.kind : 'failed';
}

/** Returns one line for the operator; with a stack for unexpected errors only. */
async function messageOf(error: unknown, wantsJson: boolean): Promise<string> {
  if (error instanceof CommandError || error instanceof StartupError) return error.message;
  const { isStoreFailure } = await import('../../server/src/db/failures.ts');
  const { message } = error instanceof Error ? error : { message: String(error) };
  if (isStoreFailure(error)) return `The store cannot be used right now: ${message}`;
  return error instanceof Error && error.stack !== undefined && !wantsJson ? error.stack : message;
}

async function messageFor(error: unknown, wantsJson: boolean): Promise<string> {
  const message = await messageOf(error, wantsJson);
  const more = error instanceof CommandError ? error.more : {};
  if (wantsJson) return JSON.stringify({ error: { code: kindOf(error).toUpperCase(), message, ...more } });
  const below = error instanceof CommandError && error.text !== null ? `\n${error.text}` : '';
  return `latchkey: ${message}${below}`;
}

/** Runs a command line, prints its output and errors, and returns the exit code. Never throws. */
export async function runCommandLine(
  args: readonly string[],
  context: RuntimeContext,
  { print, printError }: Output,
): Promise<number> {
  // Read from the raw words: a command line that cannot be parsed gets a JSON error, too.
  const wantsJson = args.includes('--json');
  try {
    const outcome = await runProgram(commands, args, {
      print,
      run: (command, given) => command.run(given, context),
    });
    if (outcome !== null) print(`${wantsJson ? JSON.stringify(outcome.data) : outcome.text}\n`);
    return 0;
  } catch (error) {
    printError(`${await messageFor(error, wantsJson)}\n`);
    return exitCodes[kindOf(error)];
  }
}
