import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Principal } from '../../access/principal.ts';
import { ApiError } from '../../base/errors.ts';
import { responseBudgets } from './response-budget.ts';

const mebibyte = 1_048_576;

describe('memory for answers that wait for their readers (HTTP-34)', () => {
  let app: FastifyInstance;
  let url: string;
  const leaving = new Set<AbortController>();
  /** Responses that are read once no client can read them any more. */
  const unread = new Set<Response>();

  beforeEach(async () => {
    app = Fastify({ forceCloseConnections: true });
    app.decorateRequest('caller', null);
    app.decorateRequest('scope', null);
    const hold = responseBudgets();
    app.addHook('onSend', async (request, reply, payload) => hold(payload, request, reply));
    app.get<{ Querystring: { size: string } }>('/', (request, reply) => {
      const userId = request.headers['x-user'];
      if (userId !== undefined) request.caller = { kind: 'session', userId } as Principal;
      reply.send('x'.repeat(Number(request.query.size) * mebibyte));
    });
    app.setErrorHandler((error, _, reply) => {
      if (!(error instanceof ApiError)) throw error;
      reply.code(error.status).headers(error.headers).send('refused');
    });
    url = await app.listen({ host: '127.0.0.1', port: 0 });
  });
  afterEach(async () => {
    for (const one of leaving) one.abort();
    leaving.clear();
    unread.clear();
    await app.close();
  });

  /** Asks for an answer and reads none of it. */
  async function ask(size: number, user?: string) {
    const leaver = new AbortController();
    leaving.add(leaver);
    const headers = user === undefined ? {} : { 'x-user': user };
    const response = await fetch(`${url}/?size=${size}`, { headers, signal: leaver.signal });
    unread.add(response);
    return { status: response.status, leave: () => leaver.abort() };
  }

  async function statusesOf(count: number, size: number, user?: string): Promise<number[]> {
    const statuses: number[] = [];
    for (let asked = 0; asked < count; asked += 1) statuses.push((await ask(size, user)).status);
    return statuses;
  }

  it('429: one reader has 32 MiB, whatever the others have, and has them again once it has left', async () => {
    const held = [await ask(16, 'ada'), await ask(15, 'ada')];
    expect(held.map(({ status }) => status)).toEqual([200, 200]);
    expect(await statusesOf(2, 2, 'ada')).toEqual([429, 429]);
    expect(await statusesOf(1, 2, 'grace')).toEqual([200]);
    held[0]?.leave();
    await vi.waitUntil(async () => (await ask(2, 'ada')).status === 200);
  });

  it('429: a network without a credential has 16 MiB', async () => {
    expect(await statusesOf(3, 7)).toEqual([200, 200, 429]);
    expect(await statusesOf(1, 7, 'ada')).toEqual([200]);
  });

  it('is not asked for by short answers', async () => {
    expect(await statusesOf(2, 16, 'ada')).toEqual([200, 200]);
    expect(await statusesOf(5, 0.05, 'ada')).toEqual([200, 200, 200, 200, 200]);
  });
});
