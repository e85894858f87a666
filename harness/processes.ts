import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable } from 'node:stream';

const graceMs = 15_000;
const saidCharactersMax = 20_000;
/** Where programs of the system stand, also when this is not in the PATH of the caller. */
const systemDirectories = ['/usr/local/sbin', '/usr/sbin', '/sbin'];
const searched = [process.env['PATH'] ?? '', ...systemDirectories].join(delimiter);
const running = new Set<Program>();
const folders = new Set<string>();
const unmounts = new Set<() => void>();
process.once('exit', () => {
  for (const program of running) program.signal('SIGKILL');
});

/** A new folder below the system's temporary one, removed by `endEverything`. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-harness-'));
  folders.add(folder);
  return folder;
}

/** Removes a folder that was made here before everything ends. */
export function removeFolder(folder: string): void {
  folders.delete(folder);
  rmSync(folder, { recursive: true, force: true });
}

/** Has a mounted file system unmounted at the end; returns the function that does it before. */
export function toUnmount(unmount: () => void): () => void {
  const now = () => {
    if (unmounts.delete(now)) unmount();
  };
  unmounts.add(now);
  return now;
}

/** A port of the loopback interface at which nothing listened a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return typeof address === 'object' && address ? address.port : 0;
}

function findProgram(name: string): string | undefined {
  return searched
    .split(delimiter)
    .map((directory) => join(directory, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** The path of a program. Throws with the command that installs its Debian package when it is missing. */
export function requireProgram(name: string, debianPackage = name): string {
  const program = findProgram(name);
  if (program !== undefined) return program;
  throw new Error(`${name} is missing: run apt-get install -y ${debianPackage}, or npm test`);
}

/** A user and a group of the system. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** How a program is started. */
export interface StartOptions {
  /** The whole environment, but for PATH and HOME. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  /** Where its output goes instead of here. */
  readonly logFile?: string | undefined;
  /** The user that it runs as, if not the caller's; takes root. */
  readonly owner?: Owner | null;
  /** What `endEverything` ends it with. */
  readonly endSignal?: NodeJS.Signals;
}

/** How a program ended; `error` where it could not be started. */
interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

/** The command with what ends it when this process ends, also when nothing here can end it any more. */
function bound(command: readonly string[], owner: Owner | null): readonly string[] {
  const setpriv = findProgram('setpriv');
  if (setpriv === undefined) return command;
  const as = owner ? [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups'] : [];
  return [setpriv, ...as, '--pdeathsig', 'KILL', '--', ...command];
}

/** A program that was started here, in a process group of its own. */
export class Program {
  readonly ended: Promise<Ended>;
  /** What `endEverything` ends it with. */
  readonly endSignal: NodeJS.Signals;
  readonly #child: ChildProcess;
  #said = '';

  constructor(child: ChildProcess, endSignal: NodeJS.Signals) {
    this.#child = child;
    this.endSignal = endSignal;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#said = (this.#said + text).slice(-saidCharactersMax);
      });
    }
    running.add(this);
    this.ended = new Promise<Ended>((resolve) => {
      child.once('error', (error) => resolve({ code: null, signal: null, error }));
      child.once('close', (code, signal) => resolve({ code, signal }));
    }).finally(() => running.delete(this));
  }

  /** The number of its process; 0 where it could not be started. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** What it prints. Throws where its output goes to a file. */
  get stdout(): Readable {
    return this.#stream(this.#child.stdout);
  }

  /** What it prints on the standard error. Throws where its output goes to a file. */
  get stderr(): Readable {
    return this.#stream(this.#child.stderr);
  }

  #stream(stream: Readable | null): Readable {
    if (stream === null) throw new Error('the output goes to a file');
    return stream;
  }

  /** The last that it printed, on either. */
  said(): string {
    return this.#said;
  }

  /** Whether its process is there. */
  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null && this.pid !== 0;
  }

  /** Sends a signal to it and to what it started; nothing where it has ended. */
  signal(name: NodeJS.Signals): void {
    if (!running.has(this) || this.pid === 0) return;
    try {
      process.kill(-this.pid, name);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }

  /** Ends it by a signal and waits; it is killed when it does not end within 15 seconds. */
  async end(name: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    this.signal(name);
    // A stopped process hears nothing else.
    this.signal('SIGCONT');
    const timer = setTimeout(() => this.signal('SIGKILL'), graceMs);
    const ended = await this.ended;
    clearTimeout(timer);
    return ended;
  }
}

/** Whether an error says that there is no such process. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ESRCH';
}

/** Starts a program that ends with this process. Its environment is `env`, PATH and HOME. */
export function start(command: string, args: readonly string[], options: StartOptions = {}): Program {
  const { env = {}, cwd, logFile, owner = null, endSignal = 'SIGKILL' } = options;
  const log = logFile === undefined ? null : openSync(logFile, 'a');
  const [program = command, ...rest] = bound([command, ...args], owner);
  const home = process.env['HOME'];
  const child = spawn(program, rest, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: searched, ...(home === undefined ? {} : { HOME: home }), ...env },
    stdio: log === null ? ['ignore', 'pipe', 'pipe'] : ['ignore', log, log],
    detached: true,
  });
  if (log !== null) closeSync(log);
  return new Program(child, endSignal);
}

/** Gathers a stream of text; the function that it returns gives what has come so far. */
export function collect(stream: Readable): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

/** Ends every program that was started here and is still running, unmounts what is mounted and removes the temporary folders. */
export async function endEverything(): Promise<void> {
  await Promise.all([...running].map((program) => program.end(program.endSignal)));
  for (const unmount of unmounts) unmount();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  folders.clear();
}
