import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Scope } from '../../base/scope.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Resources of the request; `null` until it takes any, as most requests never do. */
    scope: RequestScope | null;
  }
}

/**
 * The scope of one request. It ends once the response has been sent or the connection has closed, whichever comes
 * first, but not while the handler runs: the handler has the body in memory, whether or not the client still waits.
 * Rule: HTTP-32.
 */
export class RequestScope extends Scope {
  #isOver = false;
  #running = 0;

  /** Runs what works with the things that the scope holds. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
      if (this.#isOver) this.over();
    }
  }

  /** To be called when the response is sent or the connection closed. */
  over(): void {
    this.#isOver = true;
    if (this.#running === 0) this.end();
  }
}

/**
 * The scopes of the requests on each connection. A response that waits behind another one on its connection gets no
 * event when the connection closes, so the connection itself is listened to, once for all its requests.
 */
const byConnection = new WeakMap<Socket, Set<RequestScope>>();

function scopesOf(socket: Socket): Set<RequestScope> {
  const known = byConnection.get(socket);
  if (known) return known;
  const scopes = new Set<RequestScope>();
  byConnection.set(socket, scopes);
  socket.once('close', () => {
    for (const scope of scopes) scope.over();
  });
  return scopes;
}

/** The scope of a request, made when the request first takes something. Ended already where the caller has left. */
export function scopeOf(request: FastifyRequest, reply: FastifyReply): RequestScope {
  if (request.scope) return request.scope;
  const scope = new RequestScope();
  request.scope = scope;
  // The framework takes it for granted that there still is a socket.
  const socket: Socket | null = request.raw.socket;
  if (socket === null || socket.destroyed) {
    scope.over();
    return scope;
  }
  const scopes = scopesOf(socket);
  scopes.add(scope);
  scope.hold(() => scopes.delete(scope));
  reply.raw.once('close', () => scope.over());
  return scope;
}
