import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, Server } from '@modelcontextprotocol/server';
import type { Principal } from '../access/principal.ts';
import { release } from '../base/release.gen.ts';
import { findPrompt, prompts } from './prompts.ts';
import { resources } from './resources.ts';
import { objectionTo, type Tool } from './tool.ts';
import type { ToolResult } from './tool-call.ts';

/** Calls a tool for a caller. Never throws. */
type Run = (tool: Tool, given: Readonly<Record<string, unknown>>) => Promise<ToolResult>;

/** Server of one agent. */
export type AgentServing = ReturnType<typeof serving>;

const identity = { name: 'latchkey', title: 'Latchkey', version: release };

const instructions =
  'Latchkey manages the organization, its users, groups, teams and personal access tokens. The tools listed are those ' +
  'that your token allows; explain_access lists what any other would need. Ids have 24 hexadecimal characters. Lists ' +
  'come in pages: ask with page and limit.';

function wrongParameters(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Serves one caller: `callTool` calls a tool by the parameters of the message, and `newServer` makes a server for
 * everything else. Rules: MCP-8, MCP-10, MCP-13.
 */
export function serving(tools: ReadonlyMap<string, Tool>, caller: Principal, run: Run) {
  const isAllowed = (tool?: Tool) => tool !== undefined && objectionTo(tool.endpoint.policy, caller) === null;

  async function callTool(params: unknown): Promise<ToolResult> {
    if (!isRecord(params) || typeof params['name'] !== 'string') throw wrongParameters('name must be a string');
    const { name, arguments: given = {} } = params;
    if (!isRecord(given)) throw wrongParameters('arguments must be an object');
    const tool = tools.get(name);
    if (!tool) throw wrongParameters(`Unknown tool: ${name.slice(0, 100)}`);
    return run(tool, given);
  }

  async function readResource(uri: string) {
    const resource = resources.find(({ definition }) => definition.uri === uri);
    const tool = resource && tools.get(resource.tool);
    if (!tool) throw new ResourceNotFoundError(uri.slice(0, 200));
    const { isError, content } = await run(tool, {});
    const text = content[0]?.text ?? '';
    if (isError) throw wrongParameters(text);
    return { contents: [{ uri, mimeType: 'application/json', text }] };
  }

  function newServer() {
    // oxlint-disable-next-line typescript/no-deprecated -- "for advanced use cases": the schemas of tools are made already
    const server = new Server(identity, { capabilities: { tools: {}, resources: {}, prompts: {} }, instructions });
    server.setRequestHandler('tools/list', async () => ({
      tools: [...tools.values()].filter(isAllowed).map(({ definition }) => definition),
    }));
    server.setRequestHandler('tools/call', async ({ params }) => callTool(params));
    server.setRequestHandler('resources/list', async () => ({
      resources: resources.filter(({ tool }) => isAllowed(tools.get(tool))).map(({ definition }) => definition),
    }));
    server.setRequestHandler('resources/templates/list', async () => ({ resourceTemplates: [] }));
    server.setRequestHandler('resources/read', async ({ params: { uri } }) => readResource(uri));
    server.setRequestHandler('prompts/list', async () => ({ prompts: prompts.map(({ definition }) => definition) }));
    server.setRequestHandler('prompts/get', async ({ params }) => findPrompt(params.name, params.arguments ?? {}));
    return server;
  }

  return { callTool, newServer };
}
