import type { FastifyRequest } from 'fastify';
import { addressIn } from './trusted-proxies.ts';

const unknownAddress = 'unknown';

/**
 * Returns the client address of a request: that of the peer, or the one that a trusted proxy states. A stated value
 * that is no address is ignored, else every text would be a client of its own. A peer that has hung up may have no
 * address any more; its request is served all the same. Rule: CONFIG-16.
 */
export function clientAddress(request: FastifyRequest): string {
  // The framework takes it for granted that there still is a socket.
  const socket: unknown = request.raw.socket;
  if (socket === null) return unknownAddress;
  return addressIn(request.ip ?? '') ?? request.raw.socket.remoteAddress ?? unknownAddress;
}
