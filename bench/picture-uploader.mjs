// Uploads pictures at a fixed rate in a process of its own, whether or not earlier uploads were answered. Reads its orders
// from the variable `UPLOADS`: { port, path, headers, perSecond, pictures: [{ name, type, file }] }. When it is told to end
// (SIGTERM) it waits for the answers that are still to come and prints one line of JSON.
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { median } from './statistics.mjs';

const boundary = 'latchkey-bench-picture';
const { port, path, headers, perSecond, pictures } = JSON.parse(process.env.UPLOADS);
const agent = new Agent({ keepAlive: true });

const bodies = pictures.map(({ name, type, file }) =>
  Buffer.concat([
    Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: ${type}\r\n\r\n`,
    ),
    readFileSync(file),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]),
);

/** Uploads one picture; answers the status, or what went wrong. */
function upload(body) {
  const contentType = `multipart/form-data; boundary=${boundary}`;
  return new Promise((resolve) => {
    const sent = request(
      {
        ...{ agent, host: '127.0.0.1', port, path, method: 'PUT' },
        headers: { ...headers, 'content-type': contentType, 'content-length': body.length },
      },
      (answer) => {
        answer.resume();
        answer.once('end', () => resolve(String(answer.statusCode)));
        answer.once('error', (error) => resolve(error.message));
      },
    );
    sent.once('error', (error) => resolve(error.message));
    sent.end(body);
  });
}

const startedAt = performance.now();
const pending = [];
const answers = {};
const acceptedMs = [];

async function uploadOne() {
  const sentAt = performance.now();
  const answer = await upload(bodies[pending.length % bodies.length]);
  answers[answer] = (answers[answer] ?? 0) + 1;
  if (answer === '201') acceptedMs.push(performance.now() - sentAt);
}

// Counted from the start: a timer of 1/perSecond would fall behind on a machine that has other things to do.
const timer = setInterval(() => {
  const due = ((performance.now() - startedAt) / 1000) * perSecond;
  while (pending.length < due) pending.push(uploadOne());
}, 10);

process.once('SIGTERM', async () => {
  clearInterval(timer);
  const seconds = (performance.now() - startedAt) / 1000;
  await Promise.all(pending);
  const medianMs = acceptedMs.length === 0 ? null : median(acceptedMs);
  console.log(JSON.stringify({ perSecond: pending.length / seconds, answers, medianMs }));
  agent.destroy();
});
