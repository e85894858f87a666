import type { FastifyRequest } from 'fastify';
import { addressIn } from './trusted-proxies.ts';

const unknownAddress = 'unknown';

/**
 * Where a request comes from: the address of the peer, or of the client where a trusted proxy says so. What a proxy says
 * that is no address does not count, else every text would be a client of its own. A peer that has hung up may have none
 * any more; what it asked for is done all the same. Rule: CONFIG-16.
 */
export function clientAddress(request: FastifyRequest): string {
  // The framework takes it for granted that there still is a socket.
  const socket: unknown = request.raw.socket;
  if (socket === null) return unknownAddress;
  return addressIn(request.ip ?? '') ?? request.raw.socket.remoteAddress ?? unknownAddress;
}
