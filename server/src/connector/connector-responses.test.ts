import { describe, expect, it } from 'vitest';
import { apiErrors } from '../base/api-errors.ts';
import { ApiError, type ApiErrorName } from '../base/errors.ts';
import type { PassedResponse } from '../http/endpoint.ts';
import { passList, passOperation } from './connector-responses.ts';

function response(status: number, body: string | Buffer = '') {
  return { status, contentType: undefined, body: Buffer.from(body) };
}

/** Status and body that are passed, or the refusal. */
function outcome(pass: () => PassedResponse): [number, string] | ApiErrorName {
  try {
    const { status, body } = pass();
    return [status, body.toString()];
  } catch (error) {
    if (error instanceof ApiError) return error.errorName;
    throw error;
  }
}

const notJson: [string, string | Buffer][] = [
  ['nothing', ''],
  ['HTML', '<html><body>{"users":[]}</body></html>'],
  ['text', 'ok'],
  ['JSON that breaks off', '{"users":['],
  ['two values', '{}{}'],
  ['a byte order mark', '\uFEFF{}'],
  ['UTF-16', Buffer.from('{}', 'utf16le')],
  ['broken UTF-8', Buffer.from([0x22, 0xc3, 0x22])],
  ['spaces', '   '],
  ['more than 100 levels', `${'['.repeat(101)}${']'.repeat(101)}`],
  ['as many brackets as fit', Buffer.alloc(10 * 1_048_576, '[')],
  ['more than a million values', `[${'1,'.repeat(1_000_001)}1]`],
];
const jsons = ['{}', '[]', 'null', '"x"', ' {"users" : [ ] }\n', '{"__proto__":{"a":1}}', '"Zoë"'];
/** Bodies that only look intricate. */
const intricate = [
  `${'['.repeat(100)}${']'.repeat(100)}`,
  `[${'{},'.repeat(1_000)}[[]]]`,
  JSON.stringify({ name: `\\"${'[{,'.repeat(1_000_001)}` }),
];
const otherStatuses = [100, 201, 202, 204, 206, 301, 302, 304, 400, 401, 403, 404, 409, 429, 500, 502, 503, 504, 599];

describe('lists', () => {
  const users = (status: number, body?: string | Buffer) =>
    outcome(() => passList(response(status, body), 'connectorUsersFailed'));

  it.each(jsons)('200 with %j is passed on byte for byte (TEAM-1, TEAM-2)', (json) => {
    expect(users(200, json)).toEqual([200, json]);
  });

  it('200 may be nested and long, and hold brackets in text', () => {
    for (const json of intricate) expect(users(200, json)).toEqual([200, json]);
  });

  it.each(otherStatuses)('%i is 400 with the specified text (TEAM-9, TEAM-10)', (status) => {
    expect(users(status, '{}')).toBe('connectorUsersFailed');
    const teams = outcome(() => passList(response(status, '{}'), 'connectorTeamsFailed'));
    expect(teams).toBe('connectorTeamsFailed');
    expect(apiErrors.connectorUsersFailed).toEqual({ status: 400, code: 'BAD_REQUEST', text: 'Failed to get users' });
    expect(apiErrors.connectorTeamsFailed).toMatchObject({ status: 400, text: 'Failed to get user teams' });
  });

  it.each(notJson)('200 with %s is 502 (TEAM-11)', (_, body) => {
    expect(users(200, body)).toBe('connectorBadAnswer');
  });
});

describe('operations on a team (TEAM-12)', () => {
  const team = (status: number, body?: string | Buffer) => outcome(() => passOperation(response(status, body)));

  it.each([200, 201, 202, 203, 204, 206, 299])('%i is passed on with its status, with JSON or empty', (status) => {
    for (const body of [...jsons, '']) expect(team(status, body)).toEqual([status, body]);
  });

  it.each(notJson.slice(1))('2xx with %s is 502', (_, body) => {
    expect([team(200, body), team(201, body)]).toEqual(['connectorBadAnswer', 'connectorBadAnswer']);
  });

  it.each([
    [400, 'BAD_REQUEST'],
    [403, 'FORBIDDEN'],
    [404, 'NOT_FOUND'],
    [409, 'CONFLICT'],
  ])('%i is kept, in our own words', (status, code) => {
    const error = team(status, '{"message":"SELECT * FROM teams"}') as ApiErrorName;
    expect(apiErrors[error]).toMatchObject({ status, code });
  });

  it.each([100, 301, 302, 307, 401, 402, 405, 410, 418, 422, 429, 500, 501, 502, 503, 504, 599])(
    '%i is 502',
    (status) => {
      expect(team(status, '{}')).toBe('connectorBadAnswer');
    },
  );
});
