import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../support/test-app.ts';

const { paths }: Json = JSON.parse(readFileSync(new URL('../../../docs/openapi.gen.json', import.meta.url), 'utf8'));

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly names: readonly string[];
}

/** Every operation that is asked without a body, and its parameters that are text. */
const asked: Asked[] = Object.entries<Json>(paths).flatMap(([path, operations]) =>
  ['get', 'delete']
    .filter((method) => operations[method] !== undefined)
    .map((method) => {
      const parameters: Json[] = operations[method].parameters ?? [];
      const texts = parameters.filter(({ in: place, schema }) => place === 'query' && schema.type === 'string');
      return { method: method.toUpperCase(), path, names: texts.map(({ name }) => name) };
    }),
);

let app: TestApp;
let admin: Client;
beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

/** Some of these a store may hold, others it may not even be asked for. */
const texts = ['%00', 'a%00b', '%EF%BF%BF', '%F0%9F%8F%A0', "'%22%5C", '%25_', '%C3%A4'];

it.each(asked)(
  '$method $path: no text in its address is a fault, whatever the store (HTTP-13, STORE-13)',
  async ({ method, path, names }) => {
    const place = path.replace('/api/v1', '').replace(/^(?!\/api)/, '');
    for (const text of texts) {
      const inPath = place.replace(/\{\w+\}/g, text);
      const inQuery = names.map((name) => `${place.replace(/\{\w+\}/g, 'a'.repeat(24))}?${name}=${text}`);
      // Of deletions, only those of an unknown id are sent.
      const addresses =
        method === 'GET' || path.includes('{') ? [...(inPath === place ? [] : [inPath]), ...inQuery] : [];
      for (const address of addresses) {
        const { status } = await admin.call(method, path.startsWith('/api/v1') ? address : `/${address}`);
        expect([address, status < 500], address).toEqual([address, true]);
      }
    }
  },
);

it('401: no text as a credential, or as who a service is, is a fault', async () => {
  for (const text of ['\u0001', 'a\u0000b', '\uffff', 'ä']) {
    const basic = `Basic ${Buffer.from(`${text}:${text}`).toString('base64')}`;
    const { status } = await app.anonymous.post('/oauth2/token', undefined, { headers: { authorization: basic } });
    expect(status).toBeLessThan(500);
  }
});
