import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, type Program, removeFolder, requireProgram, start, temporaryFolder } from './processes.ts';

const startMsMax = 20_000;
const fixture = (name: string) => join(import.meta.dirname, '../server/test/support/fixtures/mail-server', name);
/** The certificate of servers that speak TLS, for 127.0.0.1; it is its own authority. */
export const certificate = {
  file: fixture('certificate.pem'),
  keyFile: fixture('key.pem'),
  text: readFileSync(fixture('certificate.pem'), 'utf8'),
};

/** Whether all threads of a process are stopped. */
function standsStill(pid: number): boolean {
  const states = readdirSync(`/proc/${pid}/task`).map((thread) => {
    return /\) (\w) /.exec(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'))?.[1];
  });
  return states.every((state) => state === 'T');
}

/** How a kind of broker is started. */
export interface BrokerKind {
  readonly program: string;
  /** A command that starts it, such as one that keeps it to a core. */
  readonly wrap?: readonly string[];
  /** Of its configuration file. */
  configuration(place: { readonly port: number; readonly dataDir: string }): string;
  arguments(configurationFile: string): readonly string[];
  /** Throws while it does not respond yet. */
  ask(port: number): Promise<void>;
}

/** A real broker as a process of its own, on a free port of the loopback interface. Ends with this process. */
export class BrokerProgram {
  readonly port: number;
  readonly #kind: BrokerKind;
  readonly #directory = temporaryFolder();
  #running: Program | null = null;

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
    if (this.#running) throw new Error('it is running already');
    const { program, wrap = [] } = this.#kind;
    const file = join(this.#directory, 'broker.conf');
    mkdirSync(this.dataDir, { recursive: true });
    writeFileSync(file, this.#kind.configuration({ port: this.port, dataDir: this.dataDir }));
    const [command = program, ...args] = [...wrap, requireProgram(program), ...this.#kind.arguments(file)];
    this.#running = start(command, args, { cwd: this.#directory });
    await this.#untilItAnswers(this.#running);
  }

  async #untilItAnswers(running: Program): Promise<void> {
    const untilMs = performance.now() + startMsMax;
    for (;;) {
      try {
        await this.#kind.ask(this.port);
        return;
      } catch (error) {
        if (!running.isRunning || performance.now() > untilMs) {
          throw new Error(`${this.#kind.program} did not start: ${running.said()}`, { cause: error });
        }
        await sleep(20);
      }
    }
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const running = this.#running;
    this.#running = null;
    await running?.end(signal);
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
    const running = this.#running;
    if (!running) throw new Error('start it first');
    running.signal('SIGSTOP');
    const untilMs = performance.now() + startMsMax;
    while (!standsStill(running.pid)) {
      if (performance.now() > untilMs) throw new Error(`${this.#kind.program} does not stand still`);
      await sleep(1);
    }
  }

  /** It goes on where it was paused, with whatever arrived meanwhile. */
  resume(): void {
    this.#running?.signal('SIGCONT');
  }

  /** Removes all that it stored. Only while it is ended. */
  empty(): void {
    if (this.#running) throw new Error('end it first');
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  /** Ends it and removes everything. */
  async close(): Promise<void> {
    await this.kill();
    removeFolder(this.#directory);
  }
}
