import type { z } from 'zod';
import type { Policy } from '../access/policy.ts';
import type { Principal } from '../access/principal.ts';
import { type AnyEndpoint, addressOf, type ToolDeclaration } from '../http/endpoint.ts';
import { responseForms } from '../http/media.ts';
import { jsonSchema } from '../http/schemas.ts';

type JsonSchema = Readonly<Record<string, unknown>>;
/** A part of a request that arguments go to. */
export type Part = 'params' | 'query' | 'body';

const parts = ['params', 'query', 'body'] as const;

/** An operation as a tool. */
export interface Tool {
  readonly name: string;
  readonly endpoint: AnyEndpoint;
  readonly declaration: ToolDeclaration;
  /** Definition for clients, in the form of the protocol. Rules: MCP-5, MCP-11. */
  readonly definition: {
    readonly name: string;
    readonly title: string;
    readonly description: string;
    readonly inputSchema: { readonly type: 'object' } & JsonSchema;
    readonly outputSchema: { readonly type: 'object' } & JsonSchema;
    readonly annotations: {
      readonly title: string;
      readonly readOnlyHint: boolean;
      readonly destructiveHint: boolean;
      readonly idempotentHint: boolean;
      readonly openWorldHint: boolean;
    };
  };
  /** Part of the input that each argument belongs to. */
  readonly partOf: ReadonlyMap<string, Part>;
  /** The arguments that may be null, which then says something. */
  readonly nullable: ReadonlySet<string>;
  /** The operation takes no body where no argument belongs to it. */
  readonly bodyIsOptional: boolean;
  /** Schema of the response; a response that is no object becomes its member `items`. */
  readonly response: z.ZodType;
  readonly isList: boolean;
}

function objectSchema(schema: z.ZodType | undefined): { properties: Record<string, JsonSchema>; required: string[] } {
  if (!schema) return { properties: {}, required: [] };
  const made = jsonSchema(schema, 'input');
  const { properties = {}, required = [] } = made as { properties?: Record<string, JsonSchema>; required?: string[] };
  return { properties, required };
}

const flags = JSON.stringify(['true', 'false']);

/**
 * Returns the schema of an argument of the query: in an address flags and lists are text, here they have their own
 * types.
 */
function queryArgument(property: JsonSchema, listOf: string | undefined): JsonSchema {
  const { enum: values, description } = property;
  if (listOf !== undefined) return { type: 'array', items: { type: 'string' }, description: listOf };
  if (JSON.stringify(values) !== flags) return property;
  return { type: 'boolean', ...(description === undefined ? {} : { description }) };
}

function mayBeNull({ type, anyOf }: JsonSchema): boolean {
  const isNull = (kind: unknown) => kind === 'null' || (Array.isArray(kind) && kind.includes('null'));
  return isNull(type) || (Array.isArray(anyOf) && anyOf.some((one: JsonSchema) => isNull(one['type'])));
}

/** The arguments of a tool: those of path, query and body together. One name in two places is one argument. */
function inputOf({ policy, ...endpoint }: AnyEndpoint, { lists = {} }: ToolDeclaration) {
  const properties: Record<string, JsonSchema> = {};
  const required = new Set<string>();
  const partOf = new Map<string, Part>();
  // Without a body, nothing in it is needed.
  const bodyIsOptional = endpoint.body === undefined || endpoint.body.safeParse(undefined).success;
  for (const part of parts) {
    const schema = objectSchema(endpoint[part]);
    for (const [name, property] of Object.entries(schema.properties)) {
      properties[name] = part === 'query' ? queryArgument(property, lists[name]) : property;
      partOf.set(name, part);
    }
    for (const name of part === 'body' && bodyIsOptional ? [] : schema.required) required.add(name);
  }
  // A token may do this to itself, and then need not say who it is. Rule: MCP-7.
  if ('selfParam' in policy && policy.selfParam !== undefined) required.delete(policy.selfParam);
  return {
    partOf,
    bodyIsOptional,
    nullable: new Set(Object.keys(properties).filter((name) => mayBeNull(properties[name] ?? {}))),
    schema: { type: 'object' as const, properties, required: [...required], additionalProperties: false },
  };
}

function responseOf({ response, method, path }: AnyEndpoint, { response: reply }: ToolDeclaration): z.ZodType {
  if (reply) return reply;
  const schema = Object.entries(response).find(([status]) => status !== '204')?.[1];
  const json = schema && responseForms(schema).json;
  if (!json) throw new Error(`${method} ${path} is a tool and answers no JSON`);
  return json;
}

function outputOf(response: z.ZodType): { schema: Tool['definition']['outputSchema']; isList: boolean } {
  const made = jsonSchema(response, 'output');
  if (made['type'] === 'object') return { schema: { ...made, type: 'object' }, isList: false };
  return { schema: { type: 'object', properties: { items: made }, required: ['items'] }, isList: true };
}

const whoMay = { admin: ' For administrators.', adminOrSelf: ' For administrators, and for oneself.' } as const;

function neededFor(policy: Policy): string {
  const who = policy.who === 'admin' || policy.who === 'adminOrSelf' ? whoMay[policy.who] : '';
  if (!('scope' in policy) || policy.who === 'service') return who;
  const isFreeForItself = 'selfParam' in policy && policy.selfParam !== undefined;
  return `${who} Needs the scope ${policy.scope}${isFreeForItself ? ', but for the token that is used' : ''}.`;
}

/** Makes a tool of an endpoint that declares one. */
function makeTool(endpoint: AnyEndpoint, declaration: ToolDeclaration): Tool {
  const { name, title, description = `${endpoint.summary}.` } = declaration;
  const { method, policy } = endpoint;
  const { schema: inputSchema, ...input } = inputOf(endpoint, declaration);
  const response = responseOf(endpoint, declaration);
  const { schema: outputSchema, isList } = outputOf(response);
  const readOnly = declaration.readOnly ?? method === 'GET';
  return {
    name,
    endpoint,
    declaration,
    ...input,
    response,
    isList,
    definition: {
      name,
      title,
      description: `${description}${neededFor(policy)}`,
      inputSchema,
      outputSchema,
      annotations: {
        title,
        readOnlyHint: readOnly,
        // An operation that neither reads nor adds replaces something.
        destructiveHint: declaration.destructive ?? !(readOnly || method === 'POST'),
        idempotentHint: declaration.idempotent ?? (readOnly || method === 'PUT' || method === 'DELETE'),
        openWorldHint: false,
      },
    },
  };
}

/** All tools, by name, in the order of their endpoints. Throws for a name that is there twice. */
export function makeTools(endpoints: readonly AnyEndpoint[]): ReadonlyMap<string, Tool> {
  const tools = new Map<string, Tool>();
  for (const endpoint of endpoints) {
    if (!endpoint.tool) continue;
    const tool = makeTool(endpoint, endpoint.tool);
    if (tools.has(tool.name)) throw new Error(`${addressOf(endpoint)} is a second tool ${tool.name}`);
    tools.set(tool.name, tool);
  }
  return tools;
}

/** Why a caller may not use an operation at all; `null`: nothing speaks against it. */
export type Objection = 'administrator' | 'session' | 'scope';

/** Returns the objection to an operation, if scopes and role of the caller allow it for no input. Rule: MCP-8. */
export function objectionTo(policy: Policy, caller: Principal): Objection | null {
  if (policy.who === 'admin' && !caller.isAdmin) return 'administrator';
  if (caller.kind === 'session') return null;
  if ('sessionOnly' in policy) return 'session';
  const mayAlways = 'selfParam' in policy && policy.selfParam !== undefined;
  return 'scope' in policy && !mayAlways && !caller.scopes.has(policy.scope) ? 'scope' : null;
}
