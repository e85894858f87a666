// Uploads pictures at a fixed rate in a process of its own. Reads its orders from the variable `WORK`:
// { port, path, headers, perSecond, pictures: [{ name, type, file }] }. See actAtRate for how it ends.
import { readFileSync } from 'node:fs';
import type { Json } from '../harness/api-client.ts';
import { actAtRate, send } from './fixed-rate.ts';

const boundary = 'latchkey-bench-picture';
const { port, path, headers, perSecond, pictures } = JSON.parse(process.env['WORK'] ?? '{}');

const bodies = pictures.map(({ name, type, file }: Json) =>
  Buffer.concat([
    Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: ${type}\r\n\r\n`,
    ),
    readFileSync(file),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ]),
);
const upload = {
  port,
  path,
  method: 'PUT',
  headers: { ...headers, 'content-type': `multipart/form-data; boundary=${boundary}` },
};

actAtRate({ perSecond, good: '201' }, async (place) => (await send(upload, bodies[place % bodies.length])).status);
