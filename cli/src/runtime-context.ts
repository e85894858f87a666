import { createInterface, type Interface } from 'node:readline/promises';
import { type Readable, Writable } from 'node:stream';
import { progressBar } from './progress-bar.ts';

/** Environment and terminal of a command. */
export interface RuntimeContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Asks at the terminal; `null` where there is none, or no reply. */
  readonly ask: (question: string) => Promise<string | null>;
  /** The same for a secret: the input is not shown. */
  readonly askSecret: (question: string) => Promise<string | null>;
  /** The standard input, for a command that reads it. */
  readonly stdin: Readable;
  /** The standard output, for a command that speaks a protocol there. */
  readonly stdout: Writable;
  /** Prints one line for people, on the standard error. */
  readonly say: (line: string) => void;
  /** Shows how much of a long work is done, on a terminal only. Call it with `total` at the end. */
  readonly progress: (done: number, total: number) => void;
}

const hasTerminal = () => process.stdin.isTTY && process.stderr.isTTY;

async function responseTo(prompt: Interface, question: string): Promise<string | null> {
  // The end of the input is a reply, too.
  const closed = new Promise<null>((resolve) => {
    prompt.once('close', () => resolve(null));
  });
  try {
    return await Promise.race([prompt.question(question), closed]);
  } finally {
    prompt.close();
  }
}

async function ask(question: string): Promise<string | null> {
  if (!hasTerminal()) return null;
  return responseTo(createInterface({ input: process.stdin, output: process.stderr }), question);
}

async function askSecret(question: string): Promise<string | null> {
  if (!hasTerminal()) return null;
  // A terminal of its own, which the reader silences; its output is discarded.
  const nowhere = new Writable({ write: (_shown, _encoding, done) => done() });
  const prompt = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  process.stderr.write(question);
  try {
    return await responseTo(prompt, '');
  } finally {
    process.stderr.write('\n');
  }
}

/** The surroundings of this process. */
export function processContext(environment: RuntimeContext['environment']): RuntimeContext {
  const { stdin, stdout, stderr } = process;
  const say = (line: string) => void stderr.write(`latchkey: ${line}\n`);
  return { environment, ask, askSecret, stdin, stdout, say, progress: progressBar(stderr) };
}
