import { createInterface } from 'node:readline/promises';
import { progressBar } from './progress-bar.ts';

/** What a command sees of the process that it runs in. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Asks at the terminal; `null` where there is none, or no answer. */
  readonly ask: (question: string) => Promise<string | null>;
  /** Shows how much of a long work is done, on a terminal only. Call it with `total` at the end. */
  readonly progress: (done: number, total: number) => void;
}

async function ask(question: string): Promise<string | null> {
  if (!(process.stdin.isTTY && process.stderr.isTTY)) return null;
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  // The end of the input is an answer, too.
  const closed = new Promise<null>((resolve) => {
    prompt.once('close', () => resolve(null));
  });
  try {
    return await Promise.race([prompt.question(question), closed]);
  } finally {
    prompt.close();
  }
}

/** The surroundings of this process. */
export function processSurroundings(environment: Surroundings['environment']): Surroundings {
  return { environment, ask, progress: progressBar(process.stderr) };
}
