import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { second } from '../../base/clock.ts';

const sweepEveryMs = 20;
/** Milliseconds for requests in flight; less than the ten seconds after which the process exits. */
const graceMs = 8 * second;
/** Milliseconds in which connections made earlier are still accepted; under load there is no end to them. */
const takeInMs = second;

/**
 * Closes the connections of a stopping server, each as soon as no request is in flight on it. Its promise resolves once
 * everything has arrived that was sent before; only then may the server stop listening. Node alone closes connections
 * whose request it has not read yet, or whose response a slow reader has not received completely, and leaves open those
 * on which nothing was ever sent, and those that become idle later. Rule: RUN-7.
 */
export function connectionDrain(server: Server): () => Promise<void> {
  const sockets = new Set<Socket>();
  let taken = 0;
  server.on('connection', (socket: Socket) => {
    taken += 1;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const closeIdle = server.closeIdleConnections.bind(server);

  /** Accepts connections: a turn of the event loop accepts one, and reads all data of the open ones. */
  async function takeIn(): Promise<void> {
    const untilMs = performance.now() + takeInMs;
    let before: number;
    do {
      before = taken;
      await setImmediate();
      await setImmediate();
    } while (taken > before && performance.now() < untilMs);
  }

  function sweep(): void {
    // Node takes a connection for idle while the end of a response still waits to be sent.
    for (const { writableLength } of sockets) if (writableLength > 0) return;
    closeIdle();
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
  }

  return async () => {
    // Closing the server would call it at once.
    server.closeIdleConnections = () => {};
    await takeIn();
    sweep();
    const sweeping = setInterval(sweep, sweepEveryMs).unref();
    const deadline = setTimeout(() => server.closeAllConnections(), graceMs).unref();
    server.once('close', () => {
      clearInterval(sweeping);
      clearTimeout(deadline);
    });
  };
}
