import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/test-app.ts';

describe('GET /personal-access-tokens', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('200: lists own active tokens, newest first, without owner fields (PAT-10, PAT-11)', async () => {
    const first = await admin.token({ name: 'first' });
    const second = await admin.token({ name: 'second', expiryDays: 'never' });
    const { status, body } = await admin.get('/personal-access-tokens');
    expect(status).toBe(200);
    expect(body.tokens.map((token: { id: string }) => token.id)).toEqual([second.tokenId, first.tokenId]);
    expect(Object.keys(body.tokens[0]).sort()).toEqual(
      ['createdAt', 'expiresAt', 'id', 'lastUsedAt', 'name', 'scopes'].sort(),
    );
    expect(body.tokens[0].expiresAt).toBe('Never');
  });
});
