import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

const startMsMax = 15_000;
/** Where programs of the system stand, also when this is not in the PATH of whoever runs the tests. */
const systemDirectories = ['/usr/local/sbin', '/usr/sbin', '/sbin'];
const fixture = (name: string) => join(import.meta.dirname, '../server/test/support/fixtures/mail-server', name);
/** The certificate of servers that speak TLS, for 127.0.0.1; it is its own authority. */
export const certificate = {
  file: fixture('certificate.pem'),
  keyFile: fixture('key.pem'),
  text: readFileSync(fixture('certificate.pem'), 'utf8'),
};
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

function findProgram(name: string): string | undefined {
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), ...systemDirectories];
  return directories
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

/** Whether all threads of a process are stopped. */
function standsStill(pid: number): boolean {
  const states = readdirSync(`/proc/${pid}/task`).map((thread) => {
    return /\) (\w) /.exec(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'))?.[1];
  });
  return states.every((state) => state === 'T');
}

/** Starts a program that ends with this process, also when nobody here can end it any more. */
function launch(name: string, args: readonly string[], cwd: string) {
  const program = findProgram(name);
  if (program === undefined) throw new Error(`${name} is missing: run apt-get install -y ${name}, or npm test`);
  const bound = findProgram('setpriv');
  const [command = '', ...rest] = [...(bound ? [bound, '--pdeathsig', 'KILL', '--'] : []), program, ...args];
  return spawn(command, rest, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** A port of the loopback interface that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return typeof address === 'object' && address ? address.port : 0;
}

/** How a kind of broker is started. */
export interface BrokerKind {
  readonly program: string;
  /** Of its configuration file. */
  configuration(place: { readonly port: number; readonly dataDir: string }): string;
  arguments(configurationFile: string): readonly string[];
  /** Throws while it does not answer yet. */
  ask(port: number): Promise<void>;
}

/** A real broker as a process of its own, on a free port of the loopback interface. Ends with this process. */
export class BrokerProgram {
  readonly port: number;
  readonly #kind: BrokerKind;
  readonly #directory = mkdtempSync(join(tmpdir(), 'latchkey-broker-'));
  #child: ChildProcess | null = null;
  #said = '';

  protected constructor(kind: BrokerKind, port: number) {
    this.#kind = kind;
    this.port = port;
  }

  /** Starts one; with a port it is not one that another program was given meanwhile. */
  protected static async launch<T extends BrokerProgram>(make: (port: number) => T): Promise<T> {
    const program = make(await freePort());
    await program.start();
    return program;
  }

  get dataDir(): string {
    return join(this.#directory, 'data');
  }

  /** Starts it, on the same port each time, and waits until it answers. */
  async start(): Promise<void> {
    if (this.#child) throw new Error('it is running already');
    const file = join(this.#directory, 'broker.conf');
    writeFileSync(file, this.#kind.configuration({ port: this.port, dataDir: this.dataDir }));
    const child = launch(this.#kind.program, this.#kind.arguments(file), this.#directory);
    this.#child = child;
    running.add(child);
    this.#said = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#said = (this.#said + text).slice(-5_000);
      });
    }
    child.once('exit', () => running.delete(child));
    await this.#untilItAnswers(child);
  }

  async #untilItAnswers(child: ChildProcess): Promise<void> {
    const untilMs = performance.now() + startMsMax;
    for (;;) {
      try {
        await this.#kind.ask(this.port);
        return;
      } catch (error) {
        const hasEnded = child.exitCode !== null || child.signalCode !== null;
        if (hasEnded || performance.now() > untilMs) {
          throw new Error(`${this.#kind.program} did not start: ${this.#said}`, { cause: error });
        }
        await setTimeout(20);
      }
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    // A stopped process ends by SIGKILL only.
    child.kill('SIGCONT');
    await ended;
  }

  /** Ends it in an orderly way. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  /** Ends it on the spot. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** It answers nothing any more, and keeps its connections; once all its threads stand still, which takes a moment. */
  async pause(): Promise<void> {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('start it first');
    process.kill(pid, 'SIGSTOP');
    const untilMs = performance.now() + startMsMax;
    while (!standsStill(pid)) {
      if (performance.now() > untilMs) throw new Error(`${this.#kind.program} does not stand still`);
      await setTimeout(1);
    }
  }

  /** It goes on where it was paused, with whatever arrived meanwhile. */
  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** Removes all that it stored. Only while it is ended. */
  empty(): void {
    if (this.#child) throw new Error('end it first');
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  /** Ends it and removes everything. */
  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
