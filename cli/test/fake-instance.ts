import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { Json } from '../../server/test/support/test-app.ts';

const error = { message: 'Not found', error: { code: 'NOT_FOUND', message: 'Not found', requestId: 'x' } };

/** Responses by the first part of the path, which a test puts before the real one. */
const responses: Readonly<Record<string, (response: ServerResponse) => void>> = {
  html: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello'),
  'html-404': (response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<p>Not found'),
  json: (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"resource_name":"Other"}'),
  old: (response) => response.writeHead(404, { 'content-type': 'application/json' }).end(JSON.stringify(error)),
  moved: (response) => response.writeHead(302, { location: 'https://sso.example.com/login?to=x' }).end(),
  busy: (response) => response.writeHead(503, { 'content-type': 'text/html' }).end('<p>Busy'),
  cut: (response) => response.destroy(),
};

/** A request for MCP that waits to be answered. */
export interface HeldRequest {
  readonly message: Json;
  readonly headers: IncomingMessage['headers'];
  readonly response: ServerResponse;
  /** The other side has hung up. */
  isGone: boolean;
}

/** Something that is no instance, in many ways; or one that answers when the test wants it to. */
export class FakeInstance {
  readonly #server: Server;
  /** Path and credential of every request. */
  readonly seen: { readonly path: string; readonly authorization: string | undefined }[] = [];
  /** Requests to the MCP endpoint, except the check at the beginning. */
  readonly held: HeldRequest[] = [];
  url = '';

  private constructor() {
    this.#server = createServer((request, response) => {
      void this.#take(request, response);
    });
  }

  static async start(): Promise<FakeInstance> {
    const instance = new FakeInstance();
    instance.#server.listen(0, '127.0.0.1');
    await once(instance.#server, 'listening');
    instance.url = `http://127.0.0.1:${(instance.#server.address() as AddressInfo).port}`;
    return instance;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    this.seen.push({ path, authorization: request.headers.authorization });
    const [, first = ''] = path.split('/');
    const reply = responses[first];
    if (reply) return reply(response);
    if (request.method !== 'POST') {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"resource_name":"Latchkey"}');
      return;
    }
    const message: Json = await json(request);
    const responded = { jsonrpc: '2.0', id: message.id, result: {} };
    if (message.id === 'latchkey') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(responded));
      return;
    }
    const held: HeldRequest = { message, headers: request.headers, response, isGone: false };
    response.once('close', () => {
      held.isGone = true;
    });
    this.held.push(held);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
