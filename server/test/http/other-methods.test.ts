import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestText, sendRaw } from '../support/raw-http.ts';
import { TestApp } from '../support/test-app.ts';

describe('an address with a method that it does not take (ERR-19)', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  async function responseTo(firstLine: string): Promise<string> {
    const { answers: responses } = await sendRaw(app, requestText(`${firstLine} HTTP/1.1`));
    return `${responses[0]?.status} ${responses[0]?.headers['allow'] ?? '-'}`;
  }

  it.each([
    ['PATCH /api/v1/users', '405 GET, HEAD, POST'],
    ['PROPFIND /api/v1/users?page=1', '405 GET, HEAD, POST'],
    ['OPTIONS /mcp', '405 POST'],
    ['POST /docs', '405 GET, HEAD'],
    ['DELETE /api/v1/%75sers', '405 GET, HEAD, POST'],
    ['DELETE http://x/api/v1/users', '405 GET, HEAD, POST'],
    // One that is written out is not taken for an id, whatever is done to those.
    ['DELETE /api/v1/users/by-ids', '405 POST'],
    ['HEAD /api/v1/users/by-ids', '405 POST'],
    ['POST /api/v1/users/internal/restore', '405 GET, HEAD'],
    ['PURGE /api/v1/users/by-ids', '405 POST'],
    // A slash at the end changes nothing (FIT-40).
    ['PATCH /api/v1/users/', '405 GET, HEAD, POST'],
    ['PURGE /api/v1/users/?page=1', '405 GET, HEAD, POST'],
    ['POST /docs/', '405 GET, HEAD'],
    ['GET /mcp/', '405 POST'],
    ['DELETE /api/v1/users/by-ids/', '405 POST'],
  ])('405: %s', async (firstLine, expected) => {
    expect(await responseTo(firstLine)).toBe(expected);
  });

  it.each([
    'PATCH /api/v1/users//',
    'PURGE /api/v1//users',
    'PATCH //api/v1/users',
    'PATCH /api/v1/users%2f',
    'PURGE /api/v1/users//invitation',
    'PURGE /api/v1/:users',
    'PURGE /api/v1/users/a/b/c',
    'PURGE /API/v1/users',
    'PATCH /nowhere',
    // An id that is empty must not stand for all (FIT-40).
    'DELETE /api/v1/users/0123456789abcdef01234567/sessions/',
    'DELETE /api/v1/users/0123456789abcdef01234567/sessions/?x=1',
  ])('404: %s, where nothing is', async (firstLine) => {
    expect(await responseTo(firstLine)).toBe('404 -');
  });

  it('400: an address that is none, whatever the method', async () => {
    for (const method of ['GET', 'PURGE']) expect(await responseTo(`${method} /api/v1/%zz`)).toBe('400 -');
  });
});
