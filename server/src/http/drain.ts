import type { Server } from 'node:http';
import type { Socket } from 'node:net';

const sweepEveryMs = 20;
/** How long requests in flight have; below the ten seconds after which the process gives up. */
const graceMs = 8_000;

/**
 * What closes the connections of a server that stops, each as soon as no request is in flight on it. By itself Node
 * leaves open those on which nothing was ever sent, and those that become idle only afterwards. Rule: RUN-7.
 */
export function connectionDrain(server: Server): () => void {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return () => {
    const sweep = () => {
      server.closeIdleConnections();
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
    };
    sweep();
    const sweeping = setInterval(sweep, sweepEveryMs);
    const deadline = setTimeout(() => server.closeAllConnections(), graceMs);
    server.once('close', () => {
      clearInterval(sweeping);
      clearTimeout(deadline);
    });
  };
}
