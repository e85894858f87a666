import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { systemClock } from '../../src/base/clock.ts';
import type { Json } from './test-app.ts';
import { TestClock } from './test-clock.ts';

const fixture = (name: string) => readFileSync(join(import.meta.dirname, 'fixtures/mail-server', name), 'utf8');

/** Certificate that the receiver is trusted by; it names 127.0.0.1 alone. */
export const receiverCertificate = fixture('certificate.pem');

/** A message as the receiver got it. */
export interface ReceivedMessage {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Json;
  /** Of the connection that it came by: counts up from 1. */
  readonly connection: number;
}

/** Responds to a message; a response that it does not end stays open as long as the sender lets it. */
export type Responding = (response: ServerResponse, message: ReceivedMessage) => void;

/** Answers with a status, and perhaps headers, and an empty body. */
export function reply(status: number, headers: Readonly<Record<string, string>> = {}): Responding {
  return (response) => void response.writeHead(status, headers).end();
}

/** Receiver of a webhook's messages: a real server on loopback, which can be told to misbehave. */
export class WebhookReceiver {
  readonly messages: ReceivedMessage[] = [];
  /** Connections so far, with or without messages. */
  connections = 0;
  answering: Responding = reply(204);
  readonly #server: ReturnType<typeof createServer>;
  readonly #sockets = new Map<Socket, number>();
  readonly #protocol: string;

  private constructor(isSecure: boolean) {
    this.#protocol = isSecure ? 'https' : 'http';
    const onRequest = (request: IncomingMessage, response: ServerResponse) => void this.#receive(request, response);
    const certificate = { key: fixture('key.pem'), cert: receiverCertificate };
    this.#server = isSecure ? createTlsServer(certificate, onRequest) : createServer(onRequest);
    this.#server.on('connection', (socket) => {
      this.connections += 1;
      this.#sockets.set(socket, this.connections);
      socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
    });
  }

  static async start({ host = '127.0.0.1', isSecure = false, port = 0 } = {}): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver(isSecure);
    receiver.#server.listen(port, host);
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The receiver's address, with a path that only its owner should know. */
  get url(): string {
    return this.at('127.0.0.1');
  }

  /** The receiver's address under some name of its host. */
  at(host: string): string {
    return `${this.#protocol}://${host}:${this.port}/hook/a-secret-path?of=the-receiver`;
  }

  /** Number of open connections. */
  get open(): number {
    return this.#sockets.size;
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const { method = '', url: path = '', headers } = request;
    // Behind TLS, the connection is what is below the socket.
    const below = [...this.#sockets].find(([socket]) => socket.remotePort === request.socket.remotePort);
    const message = { method, path, headers, text, body: JSON.parse(text), connection: below?.[1] ?? 0 };
    this.messages.push(message);
    response.on('error', () => {});
    this.answering(response, message);
  }

  /** Ends every connection and listens no more. */
  async stop(): Promise<void> {
    for (const socket of this.#sockets.keys()) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/**
 * Returns a clock that starts at the present time: receivers reject messages that were signed minutes ago by their own.
 */
export function presentClock(): TestClock {
  return new TestClock(systemClock.now());
}

/** Takes a message as a receiver does that has this secret; throws for one that is not signed with it. */
export function verified(secret: string, { text, headers }: ReceivedMessage): Json {
  return new Webhook(secret).verify(text, headers as Record<string, string>);
}
