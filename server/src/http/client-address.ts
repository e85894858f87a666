import type { FastifyRequest } from 'fastify';

const unknownAddress = 'unknown';

/**
 * Where a request comes from: the address of the peer, or of the client where a trusted proxy says so. A peer that has
 * hung up may have none any more; what it asked for is done all the same. Rule: CONFIG-16.
 */
export function clientAddress(request: FastifyRequest): string {
  // The framework takes it for granted that there still is a socket.
  const socket: unknown = request.raw.socket;
  return socket === null ? unknownAddress : (request.ip ?? unknownAddress);
}
