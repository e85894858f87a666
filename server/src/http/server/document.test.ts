import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StaticDocument } from './document.ts';

const text = 'The quick brown fox. '.repeat(200);
const small = 'short';

describe('static documents (FIT-140, FIT-141)', () => {
  let app: FastifyInstance;
  beforeAll(async () => {
    app = Fastify();
    for (const [url, content] of [
      ['/large', text],
      ['/small', small],
    ] as const) {
      const document = new StaticDocument(Buffer.from(content));
      app.get(url, async (request, reply) => {
        reply.type('text/plain').headers({ vary: 'Origin', 'cache-control': 'no-cache' });
        return document.send(request, reply);
      });
    }
    await app.ready();
  });
  afterAll(() => app.close());

  const get = (headers: Record<string, string> = {}, url = '/large') => app.inject({ url, headers });

  it.each([
    ['br', 'br'],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip', 'gzip'],
    ['GZIP;q=0.5', 'gzip'],
    ['br;q=0.1, gzip;q=0.9', 'gzip'],
    ['br;q=0, *', 'gzip'],
    ['*', 'br'],
    ['x-gzip', 'gzip'],
    ['deflate', undefined],
    ['gzip;q=0', undefined],
    ['identity', undefined],
    ['', undefined],
    ['br;q=nonsense', undefined],
  ])('200: Accept-Encoding %j gets %s', async (accepted, encoding) => {
    const { statusCode, headers, rawPayload } = await get({ 'accept-encoding': accepted });
    expect([statusCode, headers['content-encoding'], headers['vary']]).toEqual([
      200,
      encoding,
      'Origin, Accept-Encoding',
    ]);
    const read = { br: brotliDecompressSync, gzip: gunzipSync }[encoding ?? ''] ?? ((bytes: Buffer) => bytes);
    expect(read(rawPayload).toString()).toBe(text);
    expect(headers['content-length']).toBe(String(rawPayload.length));
    expect(rawPayload.length < text.length).toBe(encoding !== undefined);
  });

  it('200: without Accept-Encoding, and for what is small, the bytes as they are', async () => {
    expect((await get()).body).toBe(text);
    const { body, headers } = await get({ 'accept-encoding': 'br' }, '/small');
    expect([body, headers['content-encoding']]).toEqual([small, undefined]);
  });

  it('304: for the tag of the same content in the same encoding; else 200', async () => {
    const tagOf = async (accepted: string) => String((await get({ 'accept-encoding': accepted })).headers['etag']);
    const tags = await Promise.all(['br', 'gzip', 'identity'].map(tagOf));
    expect(new Set(tags).size).toBe(3);
    for (const tag of tags) expect(tag).toMatch(/^"[\w-]+"$/);
    const [br = '', zipped = ''] = tags;
    for (const given of [br, `W/${br}`, `"other", ${br}`, '*']) {
      const { statusCode, headers, body } = await get({ 'accept-encoding': 'br', 'if-none-match': given });
      expect([given, statusCode, body, headers['etag']]).toEqual([given, 304, '', br]);
      expect([headers['cache-control'], headers['vary']]).toEqual(['no-cache', 'Origin, Accept-Encoding']);
      expect([headers['content-encoding'], headers['content-type']]).toEqual([undefined, undefined]);
    }
    for (const given of [zipped, '"other"', br.slice(1, -1), '']) {
      expect((await get({ 'accept-encoding': 'br', 'if-none-match': given })).statusCode).toBe(200);
    }
  });

  it('HEAD has the headers of GET', async () => {
    const { statusCode, headers, body } = await app.inject({
      method: 'HEAD',
      url: '/large',
      headers: { 'accept-encoding': 'br' },
    });
    expect([statusCode, body, headers['content-encoding']]).toEqual([200, '', 'br']);
    expect(headers['etag']).toBe((await get({ 'accept-encoding': 'br' })).headers['etag']);
  });
});
