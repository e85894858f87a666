import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiError } from '../../src/base/errors.ts';
import { RawConnection, requestText, sendRaw } from '../support/raw-http.ts';
import { secondConnection } from '../support/second-connection.ts';
import { type Client, TestApp } from '../support/test-app.ts';

describe('what is broken off in the middle', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start({ RATE_LIMIT: 'on' });
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('a revocation whose caller hangs up without waiting is carried out all the same (PAT-16, AUDIT-1)', async () => {
    const token = await admin.token();
    // Another transaction is writing, so that the caller is gone when its turn comes.
    const other = secondConnection(app);
    other.exec('BEGIN IMMEDIATE');
    const headers = ['Host: x', `Authorization: Bearer ${admin.credential}`];
    const caller = new RawConnection(app);
    caller.send(requestText(`DELETE /api/v1/personal-access-tokens/${token.tokenId} HTTP/1.1`, headers));
    await setTimeout(100);
    caller.socket.resetAndDestroy();
    await setTimeout(100);
    other.exec('COMMIT');
    other.close();
    const revocations = async () => (await app.audit()).filter(({ action }) => action === 'token.revoked');
    for (let tries = 0; tries < 100 && (await revocations()).length === 0; tries += 1) await setTimeout(30);
    expect(await revocations()).toMatchObject([{ subject_id: token.tokenId, network: '127.0.0.1' }]);
    expect((await token.get('/org')).status).toBe(401);
  });

  it('200: an answer that is due goes out whole, whatever follows the request on its connection (HTTP-28)', async () => {
    const { answers: responses, closed } = await sendRaw(
      app,
      `${requestText('GET /api/v1/org/exists HTTP/1.1')}garbage\r\n\r\n`,
      2,
    );
    expect([responses.map(({ status, body }) => [status, body]), closed]).toEqual([[[200, { exists: true }]], true]);
  });

  it('503: a password that could not be checked for want of capacity is no failed try (AUTH-43)', async () => {
    const { passwords } = app.services;
    const { matches } = passwords;
    passwords.matches = async () => {
      throw new ApiError('overloaded', { headers: { 'retry-after': '2' } });
    };
    for (let tries = 0; tries < 10; tries += 1) {
      expect((await app.signInTokens('ada@example.com')).status).toBe(503);
    }
    passwords.matches = matches;
    expect((await app.signInTokens('ada@example.com')).status).toBe(200);
  });
});
