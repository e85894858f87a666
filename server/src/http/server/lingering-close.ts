import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { second } from '../../base/clock.ts';
import { processNoMore } from '../request-rules.ts';

const lingerMsMax = second;
const lingerBytesMax = 16 * 1_048_576;
const lookEveryMs = 10;

/**
 * Destroys a connection whose last response has been sent, once what the peer still sends has arrived, and at the latest
 * after a second or 16 MB. Closing earlier would reset it, and a reset makes peers forget a response that they have not
 * read yet (RFC 9112, section 9.6). Something must read the connection meanwhile. Rule: FIT-44.
 */
export function lingerUntilRead(socket: Socket, hasArrived: () => boolean = () => false): void {
  processNoMore(socket);
  const endMs = performance.now() + lingerMsMax;
  const bytesMax = socket.bytesRead + lingerBytesMax;
  const looking = setInterval(() => {
    if (hasArrived()) {
      clearInterval(looking);
      // Waits for the response to leave.
      socket.destroySoon();
    } else if (performance.now() >= endMs || socket.bytesRead >= bytesMax) {
      socket.destroy();
    }
  }, lookEveryMs).unref();
  socket.once('close', () => clearInterval(looking));
}

/**
 * Prepares the end of a connection on which a response leaves before the body of its request has arrived. Node reads and
 * drops the body by itself, but closes the connection at once where it is to be closed.
 */
export function lingerAfter(message: IncomingMessage): void {
  const { socket } = message;
  processNoMore(socket);
  const { destroySoon } = socket;
  socket.destroySoon = () => {
    socket.destroySoon = destroySoon;
    if (message.complete || socket.destroyed) {
      socket.destroySoon();
      return;
    }
    socket.end();
    lingerUntilRead(socket, () => message.complete);
  };
}
