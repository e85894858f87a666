import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { catalogue } from '../../src/access/scopes.ts';
import { addressOf } from '../../src/http/endpoint.ts';
import { makeTools, type Tool } from '../../src/mcp/tool.ts';
import { routes } from '../../src/routes.gen.ts';
import { callTool, codeOf } from '../support/agents.ts';
import { type Client, type Json, TestApp } from '../support/test-app.ts';

const scopes = catalogue.map(({ name }) => name);
const tools = makeTools(routes);
/** Tools that end the run, and mails that are not sent in it: their delivery is another matter. */
const left = new Set(['revoke_my_token', 'invite_users', 'resend_invite']);
const names = [...tools.keys()].filter((name) => !left.has(name));
/** Reads that need no argument: a call without one is decided by caller and scope alone. */
const plainReads = names.filter((name) => {
  const tool = tools.get(name);
  return tool?.endpoint.method === 'GET' && !addressOf(tool.endpoint).includes(':');
});
/** Ends what a user calls by: the user who calls here is spared. */
const ends = new Set(['delete_user', 'revoke_user_sessions', 'revoke_user_tokens']);

const seed = process.env['SEED'];

describe('random tokens call random tools with random arguments', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let known: string[];
  const clients = new Map<string, Client>();

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    const other = await app.member(admin, 'other@example.com');
    const group = (await admin.post('/userGroups', { name: 'Known', type: 'custom' })).body._id;
    const theirs = (await other.post('/teams', { name: 'Theirs' })).body.team.id;
    const own = (await member.post('/teams', { name: 'Own' })).body.team.id;
    known = [member.userId, other.userId, group, theirs, own];
  });
  afterAll(() => app.close());

  async function clientOf(isAdmin: boolean, granted: readonly string[]): Promise<Client> {
    const key = `${isAdmin} ${[...granted].sort().join(' ')}`;
    const made = clients.get(key) ?? (await (isAdmin ? admin : member).token({ scopes: [...granted] }));
    clients.set(key, made);
    return made;
  }

  const anyId = () => fc.nat().map((place) => known[place % known.length] ?? '');
  const odd = () =>
    fc.oneof(
      fc.constantFrom<Json>(
        null,
        '',
        0,
        1,
        -1,
        1.5,
        1e21,
        true,
        false,
        'true',
        'active',
        'custom',
        '2026-01-01',
        [],
        {},
        [[]],
        [{}],
      ),
      fc.constantFrom<Json>(
        'x'.repeat(3_000),
        '\u202e',
        '%00',
        '../..',
        "' OR 1=1 --",
        '0123456789abcdef01234567',
        '0123456789ABCDEF01234567',
        { $ne: null },
      ),
      fc.constant<Json>({ toString: 1, valueOf: null }),
      fc.array(anyId(), { maxLength: 3 }),
      fc.string({ unit: 'binary', maxLength: 20 }).filter((text) => text.isWellFormed() && !text.includes('\0')),
      anyId(),
      fc.emailAddress(),
    );

  /** Some of the arguments that a tool has, or all. */
  const argumentsFor = (tool: Tool) =>
    fc.record(Object.fromEntries([...tool.partOf.keys()].map((name) => [name, fc.oneof(odd(), anyId())])), {
      requiredKeys: [],
    });

  /** The address of an operation; what is no text, or none at all, makes another one. */
  function pathOf({ endpoint }: Tool, given: Json): string {
    return `/${addressOf(endpoint)}`.replaceAll(/:(\w+)/g, (_, name: string) => {
      const value = given[name];
      const isText = ['number', 'boolean'].includes(typeof value) || (typeof value === 'string' && value !== '');
      return isText ? encodeURIComponent(String(value)) : 'none';
    });
  }

  function isText(value: Json): boolean {
    return typeof value !== 'object' || (Array.isArray(value) && value.every((one) => typeof one === 'string'));
  }

  /** Returns the HTTP request for a tool call; `null` where an address cannot express it. */
  function requestOf(tool: Tool, given: Json): { path: string; body: Json } | null {
    const { partOf, nullable, declaration, bodyIsOptional } = tool;
    const said = Object.entries<Json>(given).filter(([name, value]) => value !== null || nullable.has(name));
    const query = new URLSearchParams({ ...declaration.query });
    for (const [name, value] of said.filter(([name]) => partOf.get(name) === 'query')) {
      if (!isText(value) || (Array.isArray(value) && !(name in (declaration.lists ?? {})))) return null;
      query.set(name, String(value));
    }
    const body = said.filter(([name]) => partOf.get(name) === 'body');
    return {
      path: `${pathOf(tool, given)}?${query.toString()}`,
      body: body.length > 0 || !bodyIsOptional ? Object.fromEntries(body) : undefined,
    };
  }

  /** An answer without what is written behind requests, whenever that may be. */
  function settled(content: Json): Json {
    const text = JSON.stringify(content ?? null, (name, value: Json) => (name === 'lastUsedAt' ? null : value));
    return JSON.parse(text);
  }

  /** Returns the response of the route, where it can be repeated: a change is requested only once. */
  async function answeredBy(
    client: Client,
    { tool, given, result }: { tool: Tool; given: Json; result: Json },
  ): Promise<Json> {
    const asked = requestOf(tool, given);
    const isOnceOnly = tool.endpoint.method !== 'GET' && codeOf(result) === undefined;
    if (isOnceOnly) return { code: undefined, content: result.structuredContent };
    // No address says it: no value of this form is taken there.
    if (asked === null) return { code: codeOf(result) ?? 'refused', content: undefined };
    const options = asked.body === undefined ? {} : { body: asked.body };
    const { status, body } = await client.call(tool.endpoint.method, asked.path, options);
    if (status >= 400) return { code: body.error.code, content: undefined };
    return { code: undefined, content: tool.isList ? { items: body } : body };
  }

  it('the decision is that of the route, nothing fails, and nothing of others is told (MCP-9, MCP-10, SCOPE-1)', async () => {
    const randomly = (name: string) => {
      const tool = tools.get(name);
      if (!tool) throw new Error(name);
      return fc.tuple(fc.constant(name), argumentsFor(tool));
    };
    const call = fc.record({
      isAdmin: fc.boolean(),
      granted: fc.oneof(fc.constant(scopes), fc.subarray(scopes, { minLength: 1, maxLength: 2 })),
      called: fc.oneof(
        { weight: 1, arbitrary: fc.tuple(fc.constantFrom(...plainReads), fc.constant<Record<string, Json>>({})) },
        { weight: 2, arbitrary: fc.constantFrom(...names).chain(randomly) },
      ),
    });
    const outcomes: string[] = [];
    await fc.assert(
      fc.asyncProperty(call, async ({ isAdmin, granted, called: [name, given] }) => {
        const tool = tools.get(name);
        if (!tool) throw new Error(name);
        fc.pre(!ends.has(name) || given['id'] !== member.userId);
        const client = await clientOf(isAdmin, granted);
        const result = await callTool(client, tool.name, given);
        const code = codeOf(result);
        expect([tool.name, result.isError]).toEqual([tool.name, code === undefined ? undefined : true]);
        expect(['INTERNAL', 'UNAVAILABLE']).not.toContain(code);
        outcomes.push(code ?? 'good');
        const responded = await answeredBy(client, { tool, given, result });
        const told = { name, code, content: settled(result.structuredContent) };
        expect(told).toEqual({ name, code: responded.code, content: settled(responded.content) });
        // A team that the caller is not in; administrators see every one.
        expect(isAdmin || !JSON.stringify(result).includes('"Theirs"')).toBe(true);
      }),
      { numRuns: 300, ...(seed === undefined ? {} : { seed: Number(seed) }) },
    );
    const good = outcomes.filter((outcome) => outcome === 'good').length;
    expect([good > 20, outcomes.length - good > 20]).toEqual([true, true]);
    // Who is who has not been touched by any of it.
    expect((await admin.get('/whoami')).body.isAdmin).toBe(true);
    expect((await member.get('/whoami')).body.isAdmin).toBe(false);
    expect(app.logLines.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
  });
});
