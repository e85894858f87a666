// A mail server in a process of its own that takes every mail and forgets it. Prints its port as soon as it listens.
import { createServer } from 'node:net';

const responses: Readonly<Record<string, string>> = {
  EHLO: '250 sink',
  MAIL: '250 ok',
  RCPT: '250 ok',
  DATA: '354 go on',
  QUIT: '221 bye',
};

const server = createServer((socket) => {
  let held = '';
  let inData = false;
  socket.setNoDelay(true).setEncoding('latin1').write('220 sink\r\n');
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: string) => {
    held += chunk;
    for (;;) {
      const mark = inData ? '\r\n.\r\n' : '\r\n';
      const at = held.indexOf(mark);
      if (at === -1) return;
      const command = held.slice(0, 4).toUpperCase();
      held = held.slice(at + mark.length);
      socket.write(`${inData ? '250 taken' : (responses[command] ?? '250 ok')}\r\n`);
      inData = !inData && command === 'DATA';
    }
  });
});

server.listen(0, '127.0.0.1', () => console.log(Object(server.address()).port));
