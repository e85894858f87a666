import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { vi } from 'vitest';
import type { Json } from '../../server/test/support/test-app.ts';
import { root } from './command-process.ts';

const program = join(root, 'dist/bin/latchkey.js');

/** `latchkey mcp` as a process of its own, spoken to line by line. */
export class McpProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** Everything that came from the standard output, line by line. */
  readonly lines: string[] = [];
  #stderr = '';
  readonly #ended: Promise<unknown>;

  constructor(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
    this.child = spawn(process.execPath, [program, 'mcp', ...args], {
      cwd: tmpdir(),
      env: { PATH: process.env['PATH'] ?? '', ...environment },
    });
    this.#ended = once(this.child, 'close');
    createInterface({ input: this.child.stdout }).on('line', (line) => this.lines.push(line));
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
  }

  /** Writes a message, or a line that is none. */
  write(message: Json): void {
    this.child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`);
  }

  /** Writes a request. */
  request(id: string | number, method: string, params: Json = {}): void {
    this.write({ jsonrpc: '2.0', id, method, params });
  }

  /** The messages that came so far. */
  get messages(): Json[] {
    return this.lines.map((line) => JSON.parse(line));
  }

  /** Waits for the answer to a request. */
  answer(id: string | number): Promise<Json> {
    return vi.waitUntil(() => this.messages.find((message) => message.id === id), { timeout: 15_000 });
  }

  /** Waits until it has ended. */
  async end(): Promise<{ code: number | null; signal: NodeJS.Signals | null; stderr: string }> {
    await this.#ended;
    return { code: this.child.exitCode, signal: this.child.signalCode, stderr: this.#stderr };
  }

  /** Ends the input, and waits. */
  finish(): ReturnType<McpProcess['end']> {
    this.child.stdin.end();
    return this.end();
  }
}
