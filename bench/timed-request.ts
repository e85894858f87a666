import { Agent, request } from 'node:http';

const oneConnection = new Agent({ keepAlive: true, maxSockets: 1 });

/**
 * Sends one request to `api` (the address with /api/v1) and reads the answer as fast as it comes. Returns
 * `{ body, firstByteMs, totalMs }`, the first byte being the body's; throws when the status is no 2xx. All
 * requests share one connection but those with an `agent` of their own.
 */
export function timedRequest({ api, headers, agent = oneConnection }, { method = 'GET', path, json }) {
  const payload = json === undefined ? undefined : JSON.stringify(json);
  const type = payload === undefined ? {} : { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const sent = request(`${api}${path}`, { agent, method, headers: { ...headers, ...type } }, (answer) => {
      const chunks = [];
      let firstByteMs = null;
      answer.on('data', (chunk) => {
        firstByteMs ??= performance.now() - sentAt;
        chunks.push(chunk);
      });
      answer.once('error', reject);
      answer.once('end', () => {
        const totalMs = performance.now() - sentAt;
        const body = Buffer.concat(chunks);
        if (answer.statusCode >= 200 && answer.statusCode < 300) resolve({ body, firstByteMs, totalMs });
        else reject(new Error(`${method} ${path} was answered ${answer.statusCode}: ${body.subarray(0, 300)}`));
      });
    });
    sent.once('error', reject);
    sent.end(payload);
  });
}
