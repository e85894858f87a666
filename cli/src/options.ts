import { CommandError } from './failures.ts';

/** Raw value of an option: its text, `true` for a flag, nothing. */
type Given = string | boolean | undefined;

/** One option of a command. Its name is the key under which it is declared: `dataDir` is `--data-dir`. */
export interface Option<T> {
  /** Placeholder of the value in help; `null` for a flag. */
  readonly placeholder: string | null;
  readonly description: string;
  /** It is given as an argument, without its name. */
  readonly isArgument?: boolean;
  /** Throws CommandError of kind `usage`, in which `flag` is how the option is written. */
  readonly read: (given: Given, flag: string) => T;
}

/** The options of a command, by name. */
export type Options = Readonly<Record<string, Option<unknown>>>;

/** Parsed options of a command. */
export type Values<O extends Options> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

/** An option without a value: whether it is there. */
export function flag(description: string): Option<boolean> {
  return { placeholder: null, description, read: (given) => given === true };
}

/** An option with any text that is not empty; `null` when it is not given. */
export function text(placeholder: string, description: string): Option<string | null> {
  return {
    placeholder,
    description,
    read: (given, name) => {
      if (given === undefined) return null;
      if (typeof given === 'string' && given !== '') return given;
      throw new CommandError('usage', `${name} must not be empty`);
    },
  };
}

/** An option with any text that is not empty, and that must be given. */
export function neededText(placeholder: string, description: string): Option<string> {
  return {
    placeholder,
    description,
    read: (given, name) => {
      if (typeof given === 'string' && given !== '') return given;
      throw new CommandError('usage', given === undefined ? `${name} is missing` : `${name} must not be empty`);
    },
  };
}

/** Declares a required argument. */
export function argument(placeholder: string, description: string): Option<string> {
  return { ...neededText(placeholder, description), isArgument: true };
}

/** An option with one of some words. @param otherwise what holds without it; `null`: nothing does */
export function oneOf<const W extends string, const N extends W | null>(
  words: readonly W[],
  otherwise: N,
  description: string,
): Option<W | N> {
  return {
    placeholder: words.join('|'),
    description: otherwise === null ? description : `${description} (default ${otherwise})`,
    read: (given, name) => {
      if (given === undefined) return otherwise;
      const word = words.find((known) => known === given);
      if (word !== undefined) return word;
      throw new CommandError('usage', `${name} must be one of ${words.join(', ')}, not ${JSON.stringify(given)}`);
    },
  };
}

interface NumberOption {
  readonly description: string;
  readonly min: number;
  readonly max: number;
  /** Default; `null`: required. */
  readonly otherwise: number | null;
}

/** An option with a whole number within bounds. */
export function wholeNumber({ description, min, max, otherwise }: NumberOption): Option<number> {
  return {
    placeholder: 'number',
    description: otherwise === null ? description : `${description} (default ${otherwise})`,
    read: (given, name) => {
      if (given === undefined && otherwise !== null) return otherwise;
      if (given === undefined) throw new CommandError('usage', `${name} is missing`);
      const number = /^\d{1,9}$/.test(String(given)) ? Number(given) : Number.NaN;
      if (number >= min && number <= max) return number;
      const shown = JSON.stringify(given);
      throw new CommandError('usage', `${name} must be a whole number from ${min} to ${max}, not ${shown}`);
    },
  };
}

/** Returns the form of an option on the command line. */
export function flagOf(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Parses the options of a command from the command line. Throws CommandError of kind `usage`. */
export function readOptions<O extends Options>(options: O, given: Readonly<Record<string, Given>>): Values<O> {
  const values = Object.entries(options).map(([name, option]) => [name, option.read(given[name], flagOf(name))]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each value was read by the option of its name
  return Object.fromEntries(values) as Values<O>;
}

/** The option of every command that works on the store. */
export const storeOptions = {
  dataDir: text(
    'directory',
    'the directory with an embedded store; without it DATABASE_URL or DATA_DIR count, as for the server',
  ),
};
