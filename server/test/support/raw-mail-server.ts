import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** Reply to a line of a client, and at first, to none: `''`. */
export type Script = (socket: Socket, line: string) => void;

const steps: Readonly<Record<string, string>> = {
  '': '220 raw.test ESMTP',
  EHLO: '250 raw.test',
  MAIL: '250 OK',
  RCPT: '250 OK',
  DATA: '354 Go on',
  '.': '250 OK',
  RSET: '250 OK',
  QUIT: '221 Bye',
};

/** A server that says what a mail server says, but does as it likes at one step: `''`, `EHLO`, `MAIL`, `RCPT`, `DATA`, `.`. */
export function except(step: string, misbehave: (socket: Socket) => void): Script {
  return (socket, line) => {
    const verb = line.split(' ')[0] ?? '';
    if (verb === step) misbehave(socket);
    else if (steps[verb] !== undefined) socket.write(`${steps[verb]}\r\n`);
  };
}

/** Sockets that go on although the client has said goodbye. */
const talking = new WeakSet<Socket>();

/** Says a text over and over, a byte at a time, and never comes to an end before the client is gone for good. */
export function drip(text: string, everyMs: number): (socket: Socket) => void {
  return (socket) => {
    let said = 0;
    talking.add(socket);
    const timer = setInterval(() => {
      socket.write(text.charAt(said % text.length));
      said += 1;
    }, everyMs);
    socket.once('close', () => clearInterval(timer));
  };
}

/** A server on a bare socket, for what no library would do. */
export class RawMailServer {
  readonly sockets = new Set<Socket>();
  /** Every line of every client. */
  readonly lines: string[] = [];
  readonly #server: Server;

  private constructor(script: Script) {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket, script));
  }

  static async start(script: Script): Promise<RawMailServer> {
    const server = new RawMailServer(script);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #accept(socket: Socket, script: Script): void {
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('end', () => {
      if (!talking.has(socket)) socket.end();
    });
    socket.once('close', () => this.sockets.delete(socket));
    let rest = '';
    let isMail = false;
    socket.on('data', (chunk) => {
      const lines = (rest + chunk.toString('latin1')).split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        this.lines.push(line);
        if (isMail && line !== '.') continue;
        isMail = line === 'DATA';
        script(socket, line);
      }
    });
    script(socket, '');
  }

  /** Closes all connections. */
  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
