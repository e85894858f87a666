import { endEverything } from './processes.ts';

/** The positive number that an option says. */
export function positive(name: string, text: string): number {
  const number = Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new Error(`--${name} must be a positive number, not "${text}"`);
}

/** The positive whole number that an option says. */
export function positiveWhole(name: string, text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`--${name} must be a positive whole number, not "${text}"`);
}

/** The ids of rows that `--only P1,P2` names, each once and in the order of `known`; all of them where it is missing. */
export function chosenIds(only: string | undefined, known: readonly string[]): readonly string[] {
  if (only === undefined) return known;
  const wanted = only
    .toUpperCase()
    .split(',')
    .map((id) => id.trim());
  const unknown = wanted.find((id) => !known.includes(id));
  if (unknown !== undefined) throw new Error(`--only: there is no row "${unknown}"`);
  return known.filter((id) => wanted.includes(id));
}

/** Prints a line of progress. */
export type Tell = (line: string) => void;

/**
 * Runs a program of this project to its end, and then everything that it started. A signal ends it early: from then on
 * `isStopped` returns true, and what breaks is no news. What `work` throws is printed as one line with the program's name.
 */
export async function runProgram(name: string, work: (isStopped: () => boolean) => Promise<void>): Promise<void> {
  let stopped = false;
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.once(signal, () => {
      stopped = true;
      void endEverything().finally(() => process.exit(exitCode));
    });
  }
  try {
    await work(() => stopped);
  } catch (error) {
    if (!stopped) {
      process.stderr.write(`${name}: ${messageOf(error)}\n`);
      process.exitCode = 1;
    }
  } finally {
    await endEverything();
  }
}

/** What an error says; of a request that got no answer, why. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause, message } = error;
  return message === 'fetch failed' && cause instanceof Error && 'code' in cause ? String(cause.code) : message;
}
