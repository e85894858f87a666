import type { Options, Values } from './options.ts';
import { readOptions } from './options.ts';
import type { Surroundings } from './surroundings.ts';

/** What a command did: for programs (`--json` prints it as one line), and in words. Neither holds a stored secret. */
export interface Outcome {
  readonly data: Readonly<Record<string, unknown>>;
  readonly words: string;
}

interface Declaration<O extends Options> {
  /** The words that call it, such as `org restore`. */
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What an operator should know before running it. */
  readonly details: string;
  /** Lines to paste, without the name of the program. */
  readonly examples: readonly string[];
  readonly options: O;
  /**
   * Does it. Imports what it needs of the server when it runs, so that help need not wait for it. Throws CommandError,
   * or StartupError for what is wrong with configuration or store. Answers `null` when there is nothing more to print.
   */
  readonly run: (values: Values<O>, surroundings: Surroundings) => Promise<Outcome | null>;
}

/** A command with its options hidden inside. */
export interface Command extends Omit<Declaration<Options>, 'run'> {
  readonly run: (
    given: Readonly<Record<string, string | boolean>>,
    surroundings: Surroundings,
  ) => Promise<Outcome | null>;
}

/** Declares a command: everything about it is said here, once. */
export function command<const O extends Options>(declaration: Declaration<O>): Command {
  const { options, run } = declaration;
  return { ...declaration, run: async (given, surroundings) => run(readOptions(options, given), surroundings) };
}
