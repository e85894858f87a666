import type { Options, Values } from './options.ts';
import { readOptions } from './options.ts';
import type { RuntimeContext } from './runtime-context.ts';

/**
 * Result of a command: for programs (`--json` prints it as one line), and as text. Neither contains a stored secret.
 */
export interface Outcome {
  readonly data: Readonly<Record<string, unknown>>;
  readonly text: string;
}

interface Declaration<O extends Options> {
  /** The words that call it, such as `org restore`. */
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** Facts that an operator should know before running it. */
  readonly details: string;
  /** Lines to paste, without the name of the program. */
  readonly examples: readonly string[];
  readonly options: O;
  /**
   * Runs it. Imports what it needs of the server at run time, so that help stays fast. Throws CommandError, or
   * StartupError for an invalid configuration or store. Returns `null` when there is nothing more to print.
   */
  readonly run: (values: Values<O>, context: RuntimeContext) => Promise<Outcome | null>;
}

/** A command with its options hidden inside. */
export interface Command extends Omit<Declaration<Options>, 'run'> {
  readonly run: (given: Readonly<Record<string, string | boolean>>, context: RuntimeContext) => Promise<Outcome | null>;
}

/** Declares a command, in one place. */
export function command<const O extends Options>(declaration: Declaration<O>): Command {
  const { options, run } = declaration;
  return { ...declaration, run: async (given, context) => run(readOptions(options, given), context) };
}
