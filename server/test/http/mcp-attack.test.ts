import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { accept, ask, askNewest, callTool, codeOf, earlier, newest, send } from '../support/agents.ts';
import { requestText, sendRaw } from '../support/raw-http.ts';
import { storedRows } from '../support/second-connection.ts';
import { type Client, type Json, TestApp, type TestResponse, type TokenClient } from '../support/test-app.ts';

const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const callOf = (name: string, given: Json = {}, id: Json = 1) => {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: given } };
};
const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

/** The status and the code of a refusal, which has the form that every one has, whatever was given. */
function errorOf({ status, body, headers, text }: TestResponse): readonly [number, number] {
  expect(headers.get('content-type')).toMatch(/^application\/json/);
  expect(headers.get('cache-control')).toBe('no-store');
  expect(headers.get('x-request-id')).not.toBeNull();
  expect(Object.keys(body).sort()).toEqual(['error', 'id', 'jsonrpc']);
  expect([body.jsonrpc, Number.isInteger(body.error.code), typeof body.error.message]).toEqual(['2.0', true, 'string']);
  expect(text).not.toMatch(/ at \w+ \(|node_modules|\.ts:|ZodError|SELECT /);
  return [status, body.error.code];
}

describe('bad input to the endpoint of agents', () => {
  let app: TestApp;
  let admin: Client;
  let agent: TokenClient;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    agent = await admin.token();
  });
  afterAll(() => app.close());

  const raw = (bytes: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    agent.call('POST', '//mcp', { raw: bytes, headers: { accept, 'content-type': 'application/json', ...headers } });

  it.each<[string, string, number, number]>([
    ['no JSON', '{bad', 400, -32_700],
    ['JSON and more', '{} {}', 400, -32_700],
    ['33 levels', `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${nested(32)}}}`, 400, -32_700],
    ['200,000 levels', nested(200_000), 400, -32_700],
    ['a million keys', `{${Array.from({ length: 100_000 }, (_, n) => `"${n}":0`).join(',')}}`, 400, -32_700],
    ['a key twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400, -32_700],
    ['__proto__', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"__proto__":{"isAdmin":true}}}', 400, -32_700],
    ['a lone surrogate', '{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', 400, -32_700],
    ['more than a megabyte', JSON.stringify({ ...ping, params: { a: 'x'.repeat(1_048_577) } }), 413, -32_000],
    ['nothing', '', 400, -32_600],
    ['null', 'null', 400, -32_600],
    ['a number', '7', 400, -32_600],
    ['text', '"ping"', 400, -32_600],
    ['an empty object', '{}', 400, -32_600],
    ['an empty batch', '[]', 400, -32_600],
    ['a batch of nothing', '[1,null]', 400, -32_600],
    ['a batch in a batch', `[[${JSON.stringify(ping)}]]`, 400, -32_600],
  ])('%s: refused in the form of JSON-RPC (ERR-5, HTTP-11, HTTP-12, HTTP-15)', async (...[, bytes, status, code]) => {
    for (const version of [earlier, newest]) {
      const response = await raw(bytes, { 'mcp-protocol-version': version });
      expect(errorOf(response)).toEqual([status, code]);
      expect(response.body.id).toBeNull();
    }
  });

  it('415: another content type, and none; 415: a coding (ERR-5, HTTP-16, HTTP-26)', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/json; charset=latin1',
      'multipart/form-data; boundary=x',
    ]) {
      expect(errorOf(await raw(JSON.stringify(ping), { 'content-type': type }))).toEqual([415, -32_000]);
    }
  });

  it.each<[string, Json]>([
    ['another version of JSON-RPC', { ...ping, jsonrpc: '1.0' }],
    ['no version', { id: 1, method: 'ping' }],
    ['an id that is an object', { ...ping, id: {} }],
    ['an id that is null', { ...ping, id: null }],
    ['an id that is no whole number', { ...ping, id: 1.5 }],
    ['an id that is a flag', { ...ping, id: true }],
    ['a method that is a number', { ...ping, method: 7 }],
    ['a method that is a list', { ...ping, method: ['ping'] }],
    ['parameters that are a list', { ...ping, params: [1] }],
    ['parameters that are text', { ...ping, params: 'x' }],
    ['an answer and a request at once', { ...ping, result: {} }],
    ['an answer without a result', { jsonrpc: '2.0', id: 1 }],
  ])('400: %s (ERR-5)', async (_, message) => {
    expect(errorOf(await send(agent, message))).toEqual([400, -32_600]);
    expect(errorOf(await send(agent, [message]))).toEqual([400, -32_600]);
  });

  it('unknown methods and odd parameters are told in the answer, by the id of the message (MCP-1)', async () => {
    const odd: [string, Json, number][] = [
      ['nope', undefined, -32_601],
      ['constructor', {}, -32_601],
      ['__proto__', {}, -32_601],
      ['logging/setLevel', { level: 'debug' }, -32_601],
      ['completion/complete', {}, -32_601],
      ['tools/call', undefined, -32_602],
      ['tools/call', {}, -32_602],
      ['tools/call', { name: 7 }, -32_602],
      ['tools/call', { name: 'whoami', arguments: [] }, -32_602],
      ['tools/call', { name: 'whoami', arguments: 'x' }, -32_602],
      ['tools/call', { name: 'whoami', arguments: null }, -32_602],
      // The library's own word for parameters of the wrong shape.
      ['resources/read', {}, -32_603],
      ['prompts/get', { name: 'offboard_person', arguments: { email: 7 } }, -32_603],
      ['initialize', {}, -32_603],
    ];
    for (const [method, params, code] of odd) {
      const message = await ask(agent, method, params);
      expect([method, message.id, message.error.code]).toEqual([method, 1, code]);
      expect(message.error.message).not.toMatch(/ at \w+ \(|node_modules/);
    }
  });

  it('400: wrong revisions, in the header and in the envelope (MCP-14)', async () => {
    for (const version of ['1999-01-01', 'x', '2025-11-25, 2025-06-18', '2026-07-27']) {
      expect(errorOf(await send(agent, ping, { headers: { 'mcp-protocol-version': version } }))[0]).toBe(400);
    }
    // The newest one says in each message what it is, and the headers have to say the same.
    expect(errorOf(await send(agent, ping, { headers: { 'mcp-protocol-version': newest } }))).toEqual([400, -32_602]);
    const good = (await askNewest(agent, 'tools/list')).body;
    expect(good.result.tools.length).toBeGreaterThan(30);
    const envelope = (version: Json) => ({
      'io.modelcontextprotocol/protocolVersion': version,
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    });
    const list = (version: Json) => ({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/list',
      params: { _meta: envelope(version) },
    });
    const headers = { 'mcp-protocol-version': newest, 'mcp-method': 'tools/list' };
    for (const version of ['2099-01-01', 7, null, '']) {
      const { status, body } = await send(agent, list(version), {
        headers: { ...headers, 'mcp-protocol-version': String(version) || newest },
      });
      expect([status, typeof body.error.code]).toEqual([400, 'number']);
    }
    expect(
      errorOf(await send(agent, list(newest), { headers: { ...headers, 'mcp-protocol-version': earlier } }))[0],
    ).toBe(400);
    expect(errorOf(await send(agent, list(newest), { headers: { ...headers, 'mcp-method': 'tools/call' } }))[0]).toBe(
      400,
    );
    expect(errorOf(await send(agent, list(newest)))[0]).toBe(400);
    expect(errorOf(await send(agent, [list(newest)], { headers }))).toEqual([400, -32_600]);
  });

  it('a session header, of whatever kind, changes nothing (MCP-1)', async () => {
    for (const id of ['x', '../../etc', 'x'.repeat(900)]) {
      const { status, body } = await send(agent, ping, { headers: { 'mcp-session-id': id, 'last-event-id': '7' } });
      expect([status, body]).toEqual([200, { jsonrpc: '2.0', id: 1, result: {} }]);
    }
  });

  it('a foreign Host changes nothing, and stands in no answer (MCP-3, MCP-4)', async () => {
    const body = JSON.stringify(callOf('whoami'));
    const lines = [
      'Host: evil.example',
      `Authorization: Bearer ${agent.credential}`,
      `Accept: ${accept}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ];
    const { answers: responses } = await sendRaw(app, requestText('POST /mcp HTTP/1.1', lines, body));
    expect([responses[0]?.status, responses[0]?.body.id, responses[0]?.text.includes('evil')]).toEqual([200, 1, false]);
    const { answers: refused } = await sendRaw(
      app,
      requestText('POST /mcp HTTP/1.1', ['Host: evil.example', 'Content-Length: 0']),
    );
    expect([refused[0]?.status, refused[0]?.headers['www-authenticate']?.includes('evil')]).toEqual([401, false]);
  });

  it('a batch is answered one by one, in order, whatever its ids, and has its limits (MCP-1, MCP-14, MCP-16)', async () => {
    const batch = [
      callOf('whoami', {}, 5),
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      { ...ping, id: 5 },
      { ...ping, id: 'nope', method: 'nope' },
      callOf('nope', {}, 6),
    ];
    const { status, body } = await send(agent, batch, { headers: { 'mcp-protocol-version': '2025-03-26' } });
    expect([status, body.map(({ id }: Json) => id)]).toEqual([200, [5, 5, 'nope', 6]]);
    expect([body[0].result.isError, body[1].result, body[2].error.code, body[3].error.code]).toEqual([
      undefined,
      {},
      -32_601,
      -32_602,
    ]);
    expect(
      (
        await send(
          agent,
          Array.from({ length: 20 }, () => ping),
        )
      ).body,
    ).toHaveLength(20);
    const tooMany = await send(
      agent,
      Array.from({ length: 21 }, () => ping),
    );
    expect(errorOf(tooMany)).toEqual([400, -32_600]);
    const hello = {
      ...ping,
      method: 'initialize',
      params: { protocolVersion: earlier, capabilities: {}, clientInfo: { name: 'x', version: '1' } },
    };
    expect(errorOf(await send(agent, [hello, ping]))).toEqual([400, -32_600]);
    expect((await send(agent, [hello])).body[0].result.protocolVersion).toBe(earlier);
  });

  it('a batch stops as soon as its credential ends, whatever ended it, and nothing after that is done (SESSION-12)', async () => {
    const member = await app.member(admin, 'batch@example.com');
    const boss = await app.member(admin, 'batch-boss@example.com');
    await app.promote(boss.userId);
    const endings: [string, Client, Json][] = [
      ['TOKEN_REVOKED', await member.token(), callOf('revoke_my_token', {}, 1)],
      ['TOKEN_REVOKED', await boss.token(), callOf('revoke_user_tokens', { id: boss.userId }, 1)],
      ['SESSION_EXPIRED', boss, callOf('revoke_user_sessions', { id: boss.userId }, 1)],
    ];
    for (const [code, client, ending] of endings) {
      const rest = [
        callOf('whoami', {}, 2),
        { ...ping, id: 3, method: 'tools/list' },
        callOf('list_users', {}, 'four'),
      ];
      const { status, body } = await send(client, [callOf('whoami', {}, 0), ending, ...rest]);
      expect([status, body.length]).toEqual([200, 5]);
      expect([body[0].result.isError, body[1].result.isError]).toEqual([undefined, undefined]);
      for (const [place, { id }] of rest.entries()) {
        expect(body[place + 2]).toEqual({
          jsonrpc: '2.0',
          id,
          error: { code: -32_000, message: expect.any(String), data: { code } },
        });
      }
    }
  });

  it('a batch sees at once what it did to the rights of its caller (SESSION-12)', async () => {
    const boss = await app.member(admin, 'demoted@example.com');
    await app.promote(boss.userId);
    const groups = (await admin.get('/userGroups')).body.groups;
    const adminGroup = groups.find(({ type }: Json) => type === 'admin')._id;
    const { body } = await send(await boss.token(), [
      callOf('list_all_tokens', {}, 1),
      callOf('remove_group_members', { userIds: [boss.userId], groupIds: [adminGroup] }, 2),
      callOf('list_all_tokens', {}, 3),
      { ...ping, id: 4, method: 'tools/list' },
    ]);
    expect(body.slice(0, 2).map(({ result }: Json) => result?.isError)).toEqual([undefined, undefined]);
    expect(body[2].result.isError).toBe(true);
    expect(body[3].result.tools.map(({ name }: Json) => name)).not.toContain('list_all_tokens');
  });

  it('what is cancelled in the same batch is answered all the same, and nothing hangs (MCP-1)', async () => {
    const batch = [
      callOf('list_users', {}, 1),
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    ];
    expect((await send(agent, batch)).body).toHaveLength(1);
    expect((await send(agent, [...batch].reverse())).body).toHaveLength(1);
  });

  it('listening to changes ends as it begins: there are none to tell of (MCP-14)', async () => {
    for (let count = 0; count < 5; count++) {
      const filter = {
        toolsListChanged: true,
        resourcesListChanged: true,
        promptsListChanged: true,
        resourceSubscriptions: ['latchkey://me'],
      };
      const { status, text, headers } = await askNewest(agent, 'subscriptions/listen', { notifications: filter });
      expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
      expect(text).toContain('"resultType":"complete"');
    }
    expect((await ask(agent, 'subscriptions/listen', { notifications: {} })).error.code).toBe(-32_601);
    expect((await ask(agent, 'resources/subscribe', { uri: 'latchkey://me' })).error.code).toBe(-32_601);
  });

  it('arguments that no address could hold are refused as input, never as a fault (MCP-9)', async () => {
    const before = storedRows(app);
    const monsters: Json[] = [
      { toString: 1, valueOf: 1 },
      { toString: null },
      [],
      [[]],
      {},
      '\u202e',
      'x'.repeat(500_000),
      1e308,
      -0.5,
      false,
    ];
    for (const monster of monsters) {
      for (const [name, argument] of [
        ['list_users', 'search'],
        ['list_users', 'groupIds'],
        ['list_users', 'limit'],
        ['get_user', 'id'],
        ['revoke_my_token', 'tokenId'],
        ['create_user', 'email'],
      ] as const) {
        const result = await callTool(agent, name, { [argument]: monster });
        const isFine = argument === 'search' && ['number', 'boolean'].includes(typeof monster);
        const code = isFine ? undefined : 'VALIDATION_ERROR';
        expect([name, argument, codeOf(result)]).toEqual([name, argument, code]);
        expect(JSON.stringify(result).length).toBeLessThan(5_000);
      }
    }
    expect(storedRows(app)).toEqual(before);
  });
});

describe('credentials at the endpoint of agents', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const metadata = 'resource_metadata="http://localhost:0/.well-known/oauth-protected-resource/mcp"';

  /** Returns the codes of a caller's errors, whatever the message. */
  async function codesFor(client: Client): Promise<string> {
    const codes = new Set<string>();
    for (const message of [ping, [ping], {}, 'nonsense']) {
      const response = await send(client, message);
      expect(errorOf(response)).toEqual([401, -32_000]);
      const { code, requestId } = response.body.error.data;
      expect(requestId).toBe(response.headers.get('x-request-id'));
      const error = code === 'UNAUTHORIZED' ? '' : ', error="invalid_token"';
      expect(response.headers.get('www-authenticate')).toBe(`Bearer ${metadata}${error}`);
      expect(response.text).not.toContain(client.credential ?? 'Bearer');
      codes.add(code);
    }
    return [...codes].join();
  }

  it('401: none, and those of other kinds (MCP-2, MCP-3)', async () => {
    expect(await codesFor(app.anonymous)).toBe('UNAUTHORIZED');
    expect(await codesFor(app.service())).toBe('TOKEN_INVALID');
    expect(await codesFor(app.with('nonsense'))).toBe('TOKEN_INVALID');
    const { body } = await app.signInTokens('ada@example.com');
    expect(await codesFor(app.with(body.refreshToken))).toBe('TOKEN_INVALID');
    const twice = await admin.token();
    expect(await codesFor(app.with(`lkpat_${twice.credential}`))).toBe('TOKEN_INVALID');
  });

  it('401: expired, revoked, of a deleted owner, logged out (MCP-2, MCP-3)', async () => {
    const revoked = await admin.token();
    await admin.delete(`/personal-access-tokens/${revoked.tokenId}`);
    expect(await codesFor(revoked)).toBe('TOKEN_REVOKED');
    const member = await app.member(admin, 'gone@example.com');
    const ofMember = await member.token();
    await app.deleteUser(member.userId);
    expect(await codesFor(ofMember)).toBe('TOKEN_INVALID');
    const session = await app.signIn('ada@example.com');
    await session.post('/userAccount/logout/manual');
    expect(await codesFor(session)).toBe('SESSION_EXPIRED');
    const short = await admin.token({ expiryDays: 30 });
    const held = await admin.token({ expiryDays: 'never' });
    app.clock.advance(30 * 86_400_000 + 1_000);
    expect(await codesFor(short)).toBe('TOKEN_EXPIRED');
    expect((await send(held, ping)).status).toBe(200);
  });

  it('401: what was revoked while the message was on its way (AUTH-27, MCP-9)', async () => {
    const fresh = await app.signIn('ada@example.com');
    const token = await fresh.token();
    const body = JSON.stringify(callOf('list_users'));
    const begunMs = performance.now();
    const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token.credential}\r\nAccept: ${accept}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n{`,
    );
    // Long enough for a body that did not come with its headers.
    await vi.waitUntil(() => performance.now() - begunMs > 100);
    await fresh.delete(`/personal-access-tokens/${token.tokenId}`);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.write(body.slice(1));
    await once(socket, 'close');
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    expect(text).toContain('TOKEN_REVOKED');
    expect(text).toContain(metadata);
  });

  it('a good token never meets a 401, a hundred calls at a time (MCP-2, MCP-14)', async () => {
    const fresh = await app.signIn('ada@example.com');
    const token = await fresh.token();
    const calls = Array.from({ length: 100 }, (_, id) => send(token, callOf('get_user', { id: fresh.userId }, id)));
    const responses = await Promise.all(calls);
    expect(responses.map(({ status, body }) => [status, body.id])).toEqual(responses.map((_, id) => [200, id]));
    for (const { body } of responses) expect(body.result.structuredContent.email).toBe('ada@example.com');
  });

  it('anyone who hangs up, or never reads, holds no one else up (MCP-14)', async () => {
    const fresh = await app.signIn('ada@example.com');
    const token = await fresh.token();
    const body = JSON.stringify(callOf('explain_access'));
    const text = `POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token.credential}\r\nAccept: ${accept}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const sockets: Socket[] = [];
    for (let count = 0; count < 20; count++) {
      const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
      socket.on('error', () => {});
      socket.pause();
      await once(socket, 'connect');
      socket.write(text.repeat(20));
      sockets.push(socket);
      if (count % 2 === 0) socket.destroy();
    }
    expect((await send(token, ping)).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    expect((await send(token, ping)).status).toBe(200);
    const faults = app.logLines.filter((line) => JSON.parse(line).level >= 50);
    expect(faults).toEqual([]);
  });

  it('the organization gone, every token is refused (MCP-3)', async () => {
    const fresh = await app.signIn('ada@example.com');
    const token = await fresh.token();
    await app.deleteOrganization();
    expect(await codesFor(token)).toBe('TOKEN_INVALID');
  });
});

describe('stopping with calls under way', () => {
  it('200: calls that have begun are answered whole (MCP-1)', async () => {
    const app = await TestApp.start();
    const admin = await app.setUp();
    const token = await admin.token();
    const begun = [
      ...Array.from({ length: 10 }, (_, id) =>
        send(token, callOf('create_user', { fullName: 'Late', email: `late-${id}@example.com` }, id)),
      ),
      ...Array.from({ length: 10 }, () => askNewest(token, 'tools/call', { name: 'list_users', arguments: {} })),
    ];
    const arrived = () => app.logLines.filter((line) => line.includes('"route":"/mcp"')).length;
    await vi.waitUntil(() => arrived() > 0);
    const stopped = app.stop();
    const responses = await Promise.allSettled(begun);
    await stopped;
    // What was not accepted before the end was never begun; everything else is whole.
    const whole = responses.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    expect(whole.length).toBeGreaterThan(0);
    for (const { status, body } of whole) expect([status, body.result.isError]).toEqual([200, undefined]);
    await app.close();
  });
});
