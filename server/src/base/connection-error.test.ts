import { once } from 'node:events';
import { createServer, connect as plainConnect } from 'node:net';
import { connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { connectionText } from './connection-error.ts';

/** The error with which a connection ends. */
async function errorOf(socket: NodeJS.EventEmitter): Promise<unknown> {
  return once(socket, 'never').catch((error: unknown) => error);
}

describe('connectionText', () => {
  it('says that a server speaks no TLS, in place of the words of OpenSSL (FIT-101)', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      socket.on('end', () => socket.destroy());
      socket.resume().write('220 mail.example.com ready\r\n');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const client = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    const error = await errorOf(client);
    client.destroy();
    server.close();
    await once(server, 'close');
    expect(String(error)).toContain('SSL routines');
    expect(connectionText(error)).toBe('the server does not speak TLS on this port');
  });

  it('names where nothing listens, and a name that does not exist (FIT-101)', async () => {
    const refused = await errorOf(plainConnect({ host: '127.0.0.1', port: 1 }));
    expect(connectionText(refused)).toBe('nothing listens at 127.0.0.1:1 (ECONNREFUSED)');
    const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND db.invalid'), {
      code: 'ENOTFOUND',
      hostname: 'db.invalid',
    });
    expect(connectionText(unknown)).toBe('the host name db.invalid cannot be found (ENOTFOUND)');
  });

  it('takes the errors of all addresses of a name, each once (FIT-101)', () => {
    const at = (address: string) => Object.assign(new Error('x'), { code: 'ECONNREFUSED', address, port: 5432 });
    expect(connectionText(new AggregateError([at('::1'), at('127.0.0.1'), at('::1')], 'all of them'))).toBe(
      'nothing listens at [::1]:5432 (ECONNREFUSED); nothing listens at 127.0.0.1:5432 (ECONNREFUSED)',
    );
  });

  it('passes on the words of the other side, on one line (FIT-101)', () => {
    expect(connectionText(new Error('535 5.7.8\n not accepted '))).toBe('535 5.7.8 not accepted');
    const self = Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
    expect(connectionText(self)).toBe(
      'the certificate is not accepted here: self-signed certificate (DEPTH_ZERO_SELF_SIGNED_CERT)',
    );
  });
});
