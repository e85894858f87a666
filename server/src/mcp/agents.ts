import type { Policy } from '../access/policy.ts';
import type { Principal } from '../access/principal.ts';
import type { Origin } from '../base/origin.ts';
import type { WrittenResponse } from '../http/written-response.ts';

/** Caller of tools, and the parts of the request that calls them. */
export interface AgentCall {
  readonly caller: Principal;
  /** Admits the caller again to the endpoint that the request came to; returns the caller as of now. */
  readonly reauthorize: () => Promise<Principal>;
  readonly origin: Origin;
  /** The Authorization header, for operations that pass the credential on. */
  readonly authorization: string | undefined;
}

/** The headers that the protocol looks at; the credential is none of its business. */
export const readHeaders = ['accept', 'content-type', 'mcp-method', 'mcp-name', 'mcp-protocol-version'] as const;
export type McpHeaders = { readonly [name in (typeof readHeaders)[number]]?: string | undefined };

/** One request to the endpoint of the Model Context Protocol. */
interface McpRequest {
  readonly call: AgentCall;
  readonly headers: McpHeaders;
  /** The body, parsed. */
  readonly message: unknown;
}

/** An operation, with the fields that callers need who ask for their permissions. */
interface Operation {
  readonly operationId: string;
  readonly method: string;
  readonly root?: true;
  readonly path: `/${string}`;
  readonly policy: Policy;
  readonly tool?: { readonly name: string };
}

/** Speaks the Model Context Protocol with agents. Rules: MCP-1, MCP-5, MCP-8 to MCP-11. */
export interface McpService {
  /** Everything there is, tools and others. */
  readonly endpoints: readonly Operation[];
  /** Answers one request. It keeps no state between requests. */
  respond(request: McpRequest): Promise<WrittenResponse>;
  close(): Promise<void>;
}
