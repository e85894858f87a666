import { setImmediate } from 'node:timers/promises';
import type { Logger } from 'pino';
import { admit } from '../access/policy.ts';
import type { Principal } from '../access/principal.ts';
import { type ApiError, refuseInput } from '../base/errors.ts';
import { rowsCharged, spending } from '../http/budgets.ts';
import { PassedResponse, RecordWithStreamedList, WithHeaders } from '../http/endpoint.ts';
import { type RawInput, type ReadInput, unknownName } from '../http/input.ts';
import { describeFault } from '../http/server/error-responses.ts';
import type { AllServices } from '../services.ts';
import { closestName } from '../text/closest.ts';
import type { AgentCall } from './agents.ts';
import type { Part, Tool } from './tool.ts';

/** Result of a call, in the form of the protocol. */
export interface ToolResult {
  readonly [member: string]: unknown;
  readonly content: { readonly type: 'text'; readonly text: string }[];
  readonly structuredContent?: Record<string, unknown>;
  readonly isError?: true;
  readonly _meta?: Record<string, unknown>;
}

const partPrefix = /^(?:params|query|body)\./;
const problemsMax = 20;
/** The problems are listed below it, argument by argument. */
const invalid = 'The arguments are not valid';
const nameMax = 100;
/** Maximum characters of a response as JSON. It is sent twice, as text and as data: 10 MB in all. */
const textMax = 4_500_000;

type Arguments = Readonly<Record<string, unknown>>;

/** Addresses are text: a number or a flag is written as one would write it there, a list that is one with commas. */
function asText(value: unknown, isList: boolean): unknown {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return isList && Array.isArray(value) && value.every((one) => typeof one === 'string') ? value.join(',') : value;
}

/** The arguments of one part of the input. Null says nothing, as models write it, where it is no value of its own. */
function argumentsOf({ partOf, nullable }: Tool, part: Part, given: Arguments): [string, unknown][] {
  return Object.entries(given).filter(
    ([name, value]) => partOf.get(name) === part && (value !== null || nullable.has(name)),
  );
}

/** Addresses hold text; anything else is no address of anything. */
function paramsOf(tool: Tool, given: Arguments, caller: Principal): Record<string, string> {
  const { policy } = tool.endpoint;
  const params: Record<string, string> = {};
  for (const [name, value] of argumentsOf(tool, 'params', given)) {
    const text = asText(value, false);
    params[name] = typeof text === 'string' ? text : '';
  }
  const self = 'selfParam' in policy ? policy.selfParam : undefined;
  if (self === undefined || self in params || caller.kind !== 'token') return params;
  return { ...params, [self]: caller.tokenId };
}

function queryOf(tool: Tool, given: Arguments): Record<string, unknown> {
  const { query = {}, lists = {} } = tool.declaration;
  const texts: Record<string, unknown> = { ...query };
  for (const [name, value] of argumentsOf(tool, 'query', given)) texts[name] = asText(value, name in lists);
  return texts;
}

/** Throws `invalidInput` for arguments that the tool doesn't know. */
function refuseUnknown({ partOf }: Tool, given: Arguments): void {
  const unknown = Object.keys(given).filter((name) => !partOf.has(name));
  if (unknown.length === 0) return;
  const known = [...partOf.keys()].join(', ') || 'none';
  throw refuseInput(
    ...unknown.slice(0, problemsMax).map((name) => {
      const problem = unknownName('argument', closestName(name, [...partOf.keys()]));
      return { field: name.slice(0, nameMax), message: `${problem}; there are: ${known}` };
    }),
  );
}

/**
 * Sorts arguments into the parts of a request, for a caller who is admitted. Throws the error of the policy, then
 * `invalidInput`.
 */
function rawInput(tool: Tool, given: Arguments, { caller, authorization, origin }: AgentCall): RawInput {
  const params = paramsOf(tool, given, caller);
  admit(tool.endpoint.policy, caller, params);
  refuseUnknown(tool, given);
  const body = argumentsOf(tool, 'body', given);
  return {
    params,
    query: queryOf(tool, given),
    headers: { authorization },
    body: body.length > 0 || !tool.bodyIsOptional ? Object.fromEntries(body) : undefined,
    caller,
    origin,
  };
}

/** Result that replaces a response that is larger than that. Rule: MCP-16. */
const tooLarge: ToolResult = {
  isError: true,
  content: [{ type: 'text', text: 'The response would be larger than 10 MB: request a page of it, or less' }],
};

/**
 * Returns a response with its long list, read in batches, so that other requests get their turn; `null`: it is too
 * large.
 */
async function withItems(
  { record, field, rows: rowBatches }: RecordWithStreamedList<unknown>,
  charge: (rows: number) => void,
) {
  const items: unknown[] = [];
  let length = 0;
  for await (const batch of rowBatches) {
    charge(batch.length);
    items.push(...batch);
    length += JSON.stringify(batch).length;
    if (length > textMax) return null;
  }
  return { ...record, [field]: items };
}

function unwrapped(response: unknown): unknown {
  if (response instanceof WithHeaders) return response.body;
  if (!(response instanceof PassedResponse)) return response;
  return response.body.length === 0 ? {} : JSON.parse(response.body.toString());
}

function toResult({ response, isList, endpoint }: Tool, given: unknown): ToolResult {
  const value = unwrapped(given);
  // A backend's response has its own fields; ours contain only declared ones.
  const written = given instanceof PassedResponse && endpoint.forwardsCredential ? value : response.parse(value ?? {});
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is no object becomes one here
  const structuredContent = (isList ? { items: written } : written) as Record<string, unknown>;
  const text = JSON.stringify(structuredContent);
  if (text.length > textMax && endpoint.method === 'GET') return tooLarge;
  return { content: [{ type: 'text', text }], structuredContent };
}

/** Returns a result as JSON. Text that it contains twice is serialized once. */
export function resultText(result: ToolResult): string {
  const text = result.structuredContent && result.content[0]?.text;
  if (text === undefined) return JSON.stringify(result);
  return `{"content":[{"type":"text","text":${JSON.stringify(text)}}],"structuredContent":${text}}`;
}

/** Returns an error as text for the model, with the challenge that an HTTP request would have got. Rule: MCP-10. */
function toErrorResult({ message, code, details, headers }: ApiError): ToolResult {
  const problems = (details ?? []).map(
    ({ field, message: problem }) => `\n- ${field.replace(partPrefix, '')}: ${problem}`,
  );
  const challenge = headers['www-authenticate'];
  return {
    isError: true,
    content: [{ type: 'text', text: `${problems.length > 0 ? invalid : message} (${code})${problems.join('')}` }],
    _meta: {
      'io.latchkey/error': { code, message, ...(details ? { details } : {}) },
      ...(challenge === undefined ? {} : { 'io.latchkey/www-authenticate': challenge }),
    },
  };
}

/** Dependencies for calling tools. */
export interface ToolCallParts {
  readonly services: AllServices;
  readonly log: Logger;
  readonly readInput: (tool: Tool) => ReadInput;
}

/**
 * Calls a tool: the checks, the input and the response are those of its operation. Never throws. Rules: MCP-9, MCP-10.
 */
export async function callTool(
  { services, log, readInput }: ToolCallParts,
  tool: Tool,
  { given, call }: { readonly given: Arguments; readonly call: AgentCall },
): Promise<ToolResult> {
  const { requestId } = call.origin;
  const { readOnlyHint } = tool.definition.annotations;
  try {
    const raw = rawInput(tool, given, call);
    const { endpoint } = tool;
    if (endpoint.precondition) await endpoint.precondition(services, null);
    const input = readInput(tool)(raw);
    const carry = spending(endpoint, services);
    const work = () => endpoint.handle(services, input);
    const response = await (carry ? carry(call.caller, work) : work());
    const isLong = response instanceof RecordWithStreamedList;
    const whole = isLong ? await withItems(response, rowsCharged(services.limits, call.caller)) : response;
    // Each step over a long list takes some time: others get their turn between them.
    if (isLong) await setImmediate();
    const result = whole === null ? tooLarge : toResult(tool, whole);
    if (isLong) await setImmediate();
    log[readOnlyHint ? 'debug' : 'info']({ requestId, tool: tool.name }, 'an agent called a tool');
    return result;
  } catch (error) {
    const refused = describeFault(error, requestId, { log, metrics: services.metrics });
    log.info({ requestId, tool: tool.name, code: refused.code }, 'a call of an agent was rejected');
    return toErrorResult(refused);
  }
}
