// A mail server that takes every mail, each after a fixed time, in a process of its own. Reads its orders from the variable
// `MAIL_SERVER`: { port, mailMs }. When it is told to end (SIGTERM) it prints one line of JSON: how many mails it took, for
// how many addresses, and how many connections it had at once at most.
import { SMTPServer } from 'smtp-server';

const { port, mailMs } = JSON.parse(process.env['MAIL_SERVER'] ?? '{}');
const addresses = new Set<string>();
let [mails, open, openMost] = [0, 0, 0];

const server = new SMTPServer({
  disabledCommands: ['AUTH', 'STARTTLS'],
  authOptional: true,
  disableReverseLookup: true,
  onData(stream, { envelope }, done) {
    stream.resume();
    stream.once('end', () => {
      setTimeout(() => {
        mails++;
        for (const { address } of envelope.rcptTo) addresses.add(address);
        done(null);
      }, mailMs);
    });
  },
});
// A connection that breaks off is seen in the numbers.
server.on('error', () => {});
server.server.on('connection', (socket) => {
  open++;
  openMost = Math.max(openMost, open);
  socket.once('close', () => {
    open--;
  });
});
server.listen(port, '127.0.0.1', () => console.error('listening'));

process.once('SIGTERM', () => {
  console.log(JSON.stringify({ mails, addresses: addresses.size, openMost }));
  process.exit();
});
