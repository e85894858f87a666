import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { catalogue } from '../../src/access/scopes.ts';
import { addressOf } from '../../src/http/endpoint.ts';
import { makeTools, type Tool } from '../../src/mcp/tool.ts';
import { routes } from '../../src/routes.gen.ts';
import { ask, askNewest, callTool, codeOf, toolNames } from '../support/agents.ts';
import { MailServer } from '../support/mail-server.ts';
import { storedRows } from '../support/second-connection.ts';
import { type Client, type Json, TestApp, type TestResponse, type TokenClient } from '../support/test-app.ts';

/** Listed for all callers: they are harmless. */
const always = ['explain_access', 'revoke_my_token', 'whoami'];

/** Tools that each scope alone shows to any member, and those that it shows to administrators besides. */
const byScope: Readonly<Record<string, { readonly member?: string[]; readonly admin?: string[] }>> = {
  'org:read': { member: ['get_organization'] },
  'org:write': { admin: ['update_organization'] },
  'org:admin': {
    admin: [
      'list_audit_records',
      'list_event_relays',
      'list_events',
      'list_service_clients',
      'list_user_sessions',
      'list_webhooks',
      'revoke_user_session',
      'revoke_user_sessions',
      'revoke_user_tokens',
      'unblock_user',
    ],
  },
  'user:read': { member: ['get_user', 'list_users'], admin: ['list_invitations'] },
  'user:write': { member: ['update_user'] },
  'user:invite': { admin: ['create_user', 'invite_users', 'resend_invite', 'restore_user'] },
  'user:delete': { admin: ['delete_user', 'revoke_invitation'] },
  'usergroup:read': {
    member: ['get_group', 'list_group_members', 'list_group_sizes', 'list_groups', 'list_groups_of_user'],
  },
  'usergroup:write': {
    admin: ['add_group_members', 'create_group', 'delete_group', 'remove_group_members', 'rename_group'],
  },
  'team:read': { member: ['get_team', 'list_my_teams', 'list_team_members'] },
  'team:write': { member: ['create_team', 'delete_team', 'update_team'] },
  'token:read': { member: ['list_my_tokens', 'list_scopes'] },
  'token:admin': { admin: ['list_all_tokens', 'revoke_any_token'] },
};

const listedFor = (scopes: readonly string[], isAdmin: boolean) =>
  [
    ...always,
    ...scopes.flatMap((scope) => [
      ...(byScope[scope]?.member ?? []),
      ...(isAdmin ? (byScope[scope]?.admin ?? []) : []),
    ]),
  ].sort();

const tools = makeTools(routes);
const toolOf = (name: string): Tool => {
  const tool = tools.get(name);
  if (!tool) throw new Error(`there is no tool ${name}`);
  return tool;
};
const everyScope = catalogue.map(({ name }) => name);
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);

let count = 0;
const fresh = (what = 'agent') => {
  count += 1;
  return `${what}-${count}`;
};

/** Removes the differences between two results that are the same otherwise. */
function alike(value: Json): Json {
  const text = JSON.stringify(value, (key, one) => (key === 'lastUsedAt' ? undefined : one));
  return JSON.parse(
    text
      .replace(/"[0-9a-f]{24}"/g, '"id"')
      .replace(/"\d{4}-\d\d-\d\dT[^"]*"/g, '"moment"')
      .replace(/(agent|fresh|user|usergroup)-\d+/g, '$1-n')
      .replace(/AtTimestamp":\d+/g, 'AtTimestamp":0'),
  );
}

describe('the tools of agents', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  let member: Client;
  /** An administrator's token that may do anything. */
  let agent: TokenClient;
  const alone = { member: new Map<string, TokenClient>(), admin: new Map<string, TokenClient>() };

  beforeAll(async () => {
    mails = await MailServer.start();
    app = await TestApp.start({ SMTP_URL: mails.url });
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    for (const name of everyScope) {
      alone.member.set(name, await member.token({ scopes: [name] }));
      alone.admin.set(name, await admin.token({ scopes: [name] }));
    }
    agent = await admin.token();
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  const newUser = async () =>
    (await admin.post('/users', { fullName: 'Fresh', email: `${fresh('fresh')}@example.com` })).body._id;
  const newGroup = async () => (await admin.post('/userGroups', { name: fresh(), type: 'custom' })).body._id;
  const newTeam = async () => (await admin.post('/teams', { name: fresh() })).body.team.id;
  async function invited(): Promise<string> {
    const email = `${fresh('fresh')}@example.com`;
    await admin.post('/users/bulk/invite', { emails: [email] });
    return (await admin.get(`/users?search=${email}`)).body.users[0]._id;
  }
  async function deleted(): Promise<string> {
    const id = await newUser();
    await admin.delete(`/users/${id}`);
    return id;
  }
  async function groupWithMember(): Promise<Json> {
    const given = { userIds: [member.userId], groupIds: [await newGroup()] };
    await admin.post('/userGroups/add-users', given);
    return given;
  }

  /** Arguments with which each tool succeeds, new ones at each call. */
  const good: Readonly<Record<string, () => Json>> = {
    explain_access: () => ({ operation: 'list_users', tools: true }),
    whoami: () => ({}),
    get_organization: () => ({}),
    update_organization: () => ({ shortName: fresh(), permanentAddress: { city: 'London' } }),
    list_events: () => ({ after: 1, limit: 3 }),
    list_event_relays: () => ({}),
    list_audit_records: () => ({ action: 'user.', limit: 3 }),
    list_service_clients: () => ({}),
    list_webhooks: () => ({}),
    list_users: async () => ({
      page: 1,
      limit: 2,
      search: 'grace',
      hasLoggedIn: true,
      groupIds: (await groupWithMember()).groupIds,
    }),
    get_user: () => ({ id: member.userId }),
    update_user: async () => ({
      id: await newUser(),
      email: `${fresh('fresh')}@example.com`,
      designation: 'Mathematician',
      mobile: null,
    }),
    create_user: () => ({ fullName: 'Fresh', email: `${fresh('fresh')}@example.com` }),
    delete_user: async () => ({ id: await newUser() }),
    restore_user: async () => ({ id: await deleted() }),
    invite_users: async () => ({ emails: [`${fresh('fresh')}@example.com`], groupIds: [await newGroup()] }),
    resend_invite: async () => ({ id: await invited() }),
    revoke_invitation: async () => ({ id: await invited() }),
    list_invitations: () => ({ limit: 1, status: 'pending' }),
    list_groups: () => ({ limit: 2, createdAfter: '2026-01-01' }),
    list_group_sizes: () => ({}),
    get_group: async () => ({ groupId: (await groupWithMember()).groupIds[0] }),
    list_group_members: async () => ({ groupId: (await groupWithMember()).groupIds[0], limit: 1 }),
    list_groups_of_user: () => ({ userId: member.userId }),
    create_group: () => ({ name: fresh(), type: 'custom' }),
    rename_group: async () => ({ groupId: await newGroup(), name: fresh() }),
    delete_group: async () => ({ groupId: await newGroup() }),
    add_group_members: async () => ({ userIds: [member.userId], groupIds: [await newGroup()] }),
    remove_group_members: groupWithMember,
    create_team: () => ({ name: fresh(), members: [{ userId: member.userId, role: 'READER' }] }),
    get_team: async () => ({ id: await newTeam() }),
    update_team: async () => ({ id: await newTeam(), description: 'Good' }),
    delete_team: async () => ({ id: await newTeam() }),
    list_team_members: async () => ({ id: await newTeam(), page: 1 }),
    list_my_teams: () => ({ search: 'no such team' }),
    list_my_tokens: () => ({}),
    list_scopes: () => ({}),
    revoke_my_token: async () => ({ tokenId: (await admin.token()).tokenId, reason: 'Good' }),
    list_all_tokens: () => ({ limit: 2, status: 'all', userId: member.userId }),
    list_user_sessions: () => ({ id: member.userId }),
    revoke_user_sessions: async () => ({ id: (await app.member(admin, `${fresh()}@example.com`)).userId }),
    revoke_user_session: async () => {
      const { userId } = await app.member(admin, `${fresh()}@example.com`);
      const { sessions } = (await admin.get(`/users/${userId}/sessions`)).body;
      return { id: userId, sessionId: sessions[0].id };
    },
    revoke_user_tokens: async () => ({ id: (await app.member(admin, `${fresh()}@example.com`)).userId }),
    unblock_user: () => ({ id: member.userId }),
    revoke_any_token: async () => ({ tokenId: (await member.token()).tokenId }),
  };

  /** The request of its own that these arguments are. */
  function overHttp(client: Client, { endpoint, partOf, declaration }: Tool, given: Json): Promise<TestResponse> {
    const of = (part: string) => Object.entries<Json>(given).filter(([name]) => partOf.get(name) === part);
    const path = of('params').reduce(
      (address, [name, value]) => address.replace(`:${name}`, value),
      `/${addressOf(endpoint)}`,
    );
    const query = new URLSearchParams({ ...declaration.query });
    for (const [name, value] of of('query')) query.set(name, String(value));
    const body = of('body');
    return client.call(
      endpoint.method,
      `${path}?${query.toString()}`,
      body.length > 0 ? { body: Object.fromEntries(body) } : {},
    );
  }

  it('there are good arguments for every tool', () => {
    expect(Object.keys(good).sort()).toEqual([...tools.keys()].sort());
  });

  it('each of those that must be there is; names are <verb>_<noun>; nothing makes tokens (MCP-5, MCP-6)', () => {
    const needed = [
      'whoami',
      'get_organization',
      'list_users',
      'get_user',
      'create_user',
      'update_user',
      'delete_user',
    ];
    for (const name of [...needed, 'list_groups', 'list_my_tokens', 'revoke_my_token']) toolOf(name);
    for (const name of tools.keys()) expect(name).toMatch(/^(whoami|[a-z]+(_[a-z]+)+)$/);
    const made = [...tools.values()].map(({ endpoint: { method, path } }) => `${method} ${path}`);
    for (const route of ['POST /personal-access-tokens', 'POST /service-clients']) expect(made).not.toContain(route);
  });

  describe.each([
    ['member', false],
    ['admin', true],
  ] as const)('tools/list of a token with one scope, of a %s', (who, isAdmin) => {
    it.each(everyScope)('%s: shows exactly what it allows (MCP-8, SCOPE-1)', async (scope) => {
      const client = alone[who].get(scope);
      if (!client) throw new Error('no token');
      expect((await toolNames(client)).sort()).toEqual(listedFor([scope], isAdmin));
    });
  });

  it('sessions and tokens of every scope see all that their person may do (MCP-2, MCP-8, SCOPE-2)', async () => {
    for (const [client, isAdmin] of [
      [admin, true],
      [agent, true],
      [member, false],
      [await member.token(), false],
    ] as const) {
      expect((await toolNames(client)).sort()).toEqual(listedFor(everyScope, isAdmin));
    }
  });

  it('a scope taken out of MCP_SCOPES hides its tools, and the newest revision lists the same (MCP-8, MCP-14, SCOPE-9)', async () => {
    const narrow = await TestApp.start({ MCP_SCOPES: 'user:read user:write' });
    try {
      const wide = await (await narrow.setUp()).token();
      narrow.environment['MCP_SCOPES'] = 'user:read';
      await narrow.service(['FETCH_CONFIG']).post('/users/updateAppConfig');
      expect((await toolNames(wide)).sort()).toEqual(listedFor(['user:read'], true));
      const { body } = await askNewest(wide, 'tools/list');
      expect(body.result.tools.map(({ name }: Json) => name).sort()).toEqual(listedFor(['user:read'], true));
    } finally {
      await narrow.close();
    }
  });

  it.each([...tools.keys()])('%s: is told in valid JSON Schema, in words, with its hints (MCP-5, MCP-11)', (name) => {
    const { definition, endpoint, partOf } = toolOf(name);
    const { title, description, inputSchema, outputSchema, annotations } = definition;
    for (const schema of [inputSchema, outputSchema]) {
      expect(schema.type).toBe('object');
      expect(ajv.validateSchema(schema), ajv.errorsText()).toBe(true);
      ajv.compile(schema);
    }
    expect([title.length > 3, title.length < 40, description.endsWith('.'), description.length < 500]).toEqual([
      true,
      true,
      true,
      true,
    ]);
    // No address of the API helps who calls tools.
    expect(name === 'explain_access' || !/ \/\w/.test(description)).toBe(true);
    expect(inputSchema['additionalProperties']).toBe(false);
    const properties = inputSchema['properties'] as Record<string, Json>;
    expect(Object.keys(properties)).toEqual([...partOf.keys()]);
    for (const [argument, schema] of Object.entries(properties)) {
      const isPlain = schema.description !== undefined || schema.examples !== undefined || schema.enum !== undefined;
      expect([argument, isPlain]).toEqual([argument, true]);
      expect(JSON.stringify(schema).length).toBeLessThan(2_000);
    }
    expect(annotations.title).toBe(title);
    expect(annotations.readOnlyHint).toBe(endpoint.method === 'GET');
    expect(annotations.destructiveHint).toBe(/^(delete|remove|revoke|update|rename)_/.test(name));
    const scope = 'scope' in endpoint.policy ? endpoint.policy.scope : null;
    expect(description.includes(`Needs the scope ${scope}`)).toBe(scope !== null);
    expect(description.includes('For administrators.')).toBe(endpoint.policy.who === 'admin');
  });

  it.each([...tools.keys()])('%s: is callable, and answers what the route answers (MCP-9)', async (name) => {
    const tool = toolOf(name);
    const given = await good[name]?.();
    expect(ajv.validate(tool.definition.inputSchema, given), ajv.errorsText()).toBe(true);
    const isRead = tool.endpoint.method === 'GET';
    const twin = isRead ? given : await good[name]?.();
    const { content, structuredContent, isError } = await callTool(agent, name, given);
    expect([isError, content[0]]).toEqual([undefined, { type: 'text', text: JSON.stringify(structuredContent) }]);
    expect(ajv.validate(tool.definition.outputSchema, structuredContent), ajv.errorsText()).toBe(true);
    const { status, body } = await overHttp(agent, tool, twin);
    expect(status).toBeLessThan(300);
    const responded = tool.isList ? { items: body } : body;
    // What is read is the same thing; what is made, or ended, is another one of the kind. When a token was used moves on.
    const isSame = isRead && !name.includes('tokens');
    const seen = (value: Json) => (isSame ? value : alike(value));
    expect(seen(structuredContent)).toEqual(seen(responded));
  });

  /** Expects that a hidden tool returns the reason. */
  function expectRefused(result: Json, { name, endpoint: { policy } }: Tool, isAdmin: boolean): void {
    expect([name, result.isError]).toEqual([name, true]);
    const needed = 'scope' in policy ? policy.scope : '';
    const isOfScope = codeOf(result) === 'INSUFFICIENT_SCOPE';
    const texts = isOfScope
      ? [`Insufficient scope. Required: ${needed} (INSUFFICIENT_SCOPE)`]
      : ['Administrators only (ADMIN_REQUIRED)', 'Admin access required (ADMIN_REQUIRED)'];
    expect(texts).toContain(result.content[0].text);
    const challenge = isOfScope ? `Bearer error="insufficient_scope", scope="${needed}"` : undefined;
    expect(result._meta['io.latchkey/www-authenticate']).toBe(challenge);
    expect(isOfScope || !isAdmin).toBe(true);
  }

  describe.each(['member', 'admin'] as const)('every tool that is hidden from a %s', (who) => {
    it.each(everyScope)('with %s alone, is refused, told why, and does nothing (MCP-10, SCOPE-1)', async (scope) => {
      const client = alone[who].get(scope);
      if (!client) throw new Error('no token');
      const listed = await toolNames(client);
      const before = storedRows(app);
      for (const tool of [...tools.values()].filter(({ name }) => !listed.includes(name))) {
        for (const given of [{}, { nonsense: true }, { id: member.userId, email: 'x' }]) {
          expectRefused(await callTool(client, tool.name, given), tool, who === 'admin');
        }
      }
      expect(storedRows(app)).toEqual(before);
    });
  });

  it('an unknown tool is an error of the protocol, in every revision (MCP-10)', async () => {
    for (const name of ['nope', 'constructor', '__proto__', 'toString', '', 'LIST_USERS', 'x'.repeat(5_000)]) {
      const message = await ask(agent, 'tools/call', { name, arguments: {} });
      expect(message).toEqual({
        jsonrpc: '2.0',
        id: 1,
        error: { code: -32_602, message: `Unknown tool: ${name.slice(0, 100)}` },
      });
    }
    const { status, body } = await askNewest(agent, 'tools/call', { name: 'nope', arguments: {} });
    expect([status, body.error.code]).toEqual([200, -32_602]);
  });

  it('revoke_my_token without an id ends the very token that calls, whatever its scopes (MCP-7, SCOPE-25)', async () => {
    const client = await member.token({ scopes: ['openid'] });
    expect(toolOf('revoke_my_token').definition.inputSchema['required']).toEqual([]);
    const other = alone.member.get('openid')?.tokenId;
    expect(codeOf(await callTool(client, 'revoke_my_token', { tokenId: other }))).toBe('INSUFFICIENT_SCOPE');
    expect((await callTool(client, 'revoke_my_token', { reason: 'Done' })).isError).toBeUndefined();
    expect((await client.get('/personal-access-tokens')).body.error.code).toBe('TOKEN_REVOKED');
    expect(codeOf(await callTool(member, 'revoke_my_token'))).toBe('VALIDATION_ERROR');
    const [row] = (await admin.get(`/personal-access-tokens/admin?status=revoked&search=test&userId=${member.userId}`))
      .body.data;
    expect([row.id, row.revokeReason]).toEqual([client.tokenId, 'Done']);
  });

  it('arguments: lists and flags as what they are, null as left out or as taken away, unknown ones named (MCP-9)', async () => {
    const { groupIds } = await groupWithMember();
    const both = await callTool(agent, 'list_users', {
      groupIds: [...groupIds, await newGroup()],
      hasLoggedIn: true,
      search: null,
    });
    expect(both.structuredContent.users.map(({ _id }: Json) => _id)).toEqual([member.userId]);
    expect(
      (await callTool(agent, 'list_users', { groupIds: groupIds[0], limit: '1' })).structuredContent.users,
    ).toHaveLength(1);
    const id = await newUser();
    const { body } = await admin.get(`/users/${id}`);
    await callTool(agent, 'update_user', { id, email: body.email, designation: 'Here' });
    const after = await callTool(agent, 'update_user', { id, email: body.email, designation: null, fullName: null });
    expect([after.structuredContent.designation, after.structuredContent.fullName]).toEqual([undefined, 'Fresh']);
    const wrong = await callTool(agent, 'list_users', { limit: 0, page: 1.5, search: ['a', 'b'], groupIds: 'x' });
    expect(wrong.content[0].text.split('\n').sort()).toEqual([
      '- groupIds.0: must be 24 hexadecimal characters',
      '- limit: must be at least 1',
      '- page: must be a whole number',
      '- search: must be a string',
      'The arguments are not valid (VALIDATION_ERROR)',
    ]);
    const unknown = await callTool(agent, 'get_user', { userId: id });
    expect(unknown.content[0].text).toContain('- userId: is not a known argument; there are: id');
  });
});
