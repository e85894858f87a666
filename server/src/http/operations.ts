import type { AnyEndpoint } from './endpoint.ts';

/** An endpoint with the name that clients call it by. */
export interface Operation extends AnyEndpoint {
  /** The tool's name in camel case, else `operationId` of the declaration, else the name of its constant. */
  readonly operationId: string;
}

function camelCase(toolName: string): string {
  return toolName.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Names the endpoints by the constants that declare them. Throws for two of one name, and for one of a family that does
 * not declare its own. Rule: FIT-120.
 */
export function nameOperations(
  declared: Readonly<Record<string, AnyEndpoint | readonly AnyEndpoint[]>>,
): readonly Operation[] {
  const named = Object.entries(declared).flatMap(([constant, one]) => {
    const family: readonly AnyEndpoint[] = 'method' in one ? [one] : one;
    return family.map((each): Operation => {
      const own = each.tool ? camelCase(each.tool.name) : each.operationId;
      if (own === undefined && 'length' in one) throw new Error(`${each.method} ${each.path} declares no operationId`);
      // Named in place, so that an endpoint and its operation are one object.
      return Object.assign(each, { operationId: own ?? constant });
    });
  });
  const seen = new Set<string>();
  for (const { operationId } of named) {
    if (seen.has(operationId)) throw new Error(`two operations have the name ${operationId}`);
    seen.add(operationId);
  }
  return named;
}
