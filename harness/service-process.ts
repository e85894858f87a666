import { join, resolve } from 'node:path';
import { ApiClient } from './api-client.ts';
import { type Program, start } from './processes.ts';

const startMsMax = 60_000;
const headCharactersMax = 50_000;

/** The program that is built of the server. */
export const builtServer = join(resolve(import.meta.dirname, '..'), 'dist/bin/server.js');

/** How a service is started. */
export interface ServiceOptions {
  readonly env: Readonly<Record<string, string>>;
  /** Another program than the built server. */
  readonly entry?: string;
  /** Another Node.js than the one of this process. */
  readonly node?: string;
  readonly cwd?: string;
  /** A program and its arguments that starts it, such as a tracer. */
  readonly wrap?: readonly string[];
}

/** The built service as a process of its own, on a free port, with nothing of this process's environment. */
export class ServiceProcess extends ApiClient {
  readonly #options: ServiceOptions;
  #running: Program | null = null;
  /** Until it listens; rejects with what it said when it ends instead. */
  protected listening: Promise<void> = Promise.resolve();

  constructor(options: ServiceOptions) {
    super();
    this.#options = options;
  }

  get env(): Readonly<Record<string, string>> {
    return this.#options.env;
  }

  /** Its process, or the last that it had. Throws where it was never started. */
  get program(): Program {
    if (this.#running === null) throw new Error('the service was not started');
    return this.#running;
  }

  /** Starts the process without waiting for anything. */
  spawn(): Program {
    const { entry = builtServer, node = process.execPath, env, cwd, wrap = [] } = this.#options;
    const [command, ...args] = [...wrap, node, entry];
    const running = start(command, args, { env: { PORT: '0', METRICS_PORT: '0', ...env }, cwd });
    this.#running = running;
    this.url = '';
    this.listening = this.#untilListening(running);
    this.listening.catch(() => {});
    return running;
  }

  #untilListening(running: Program): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = setTimeout(() => {
        running.signal('SIGKILL');
        reject(new Error('the service does not listen'));
      }, startMsMax);
      giveUp.unref();
      let head = '';
      const read = (text: string) => {
        head = (head + text).slice(0, headCharactersMax);
        const url = /"address":"(http:[^"]+)"/.exec(head)?.[1];
        if (url === undefined || running !== this.#running) return;
        this.url = url;
        running.stdout.off('data', read);
        clearTimeout(giveUp);
        resolve();
      };
      running.stdout.on('data', read);
      void running.ended.then(() => {
        clearTimeout(giveUp);
        reject(new Error(`the service ended at its start: ${running.said().trim().slice(-1_000)}`));
      });
    });
  }

  /** Starts it and waits until it listens. Throws what it said when it ends instead. */
  async start(): Promise<void> {
    this.spawn();
    await this.listening;
  }

  /** Ends it on the spot. */
  async kill(): Promise<void> {
    await this.#running?.end('SIGKILL');
  }

  /** Sends it a signal. */
  signal(name: NodeJS.Signals): void {
    this.program.signal(name);
  }

  /** Ends it in order. Throws where it does not end so. */
  async stop(): Promise<void> {
    const { code } = await this.program.end();
    if (code !== 0) throw new Error(`the service ended with ${code}: ${this.program.said().slice(-500)}`);
  }
}
