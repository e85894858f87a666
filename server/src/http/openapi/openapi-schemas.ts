import type { z } from 'zod';
import { jsonSchema } from '../schemas.ts';

type Json = Record<string, unknown>;

function isRecord(given: unknown): given is Json {
  return typeof given === 'object' && given !== null;
}

/** Returns a schema without the words that forbid further members: a later release may add some. Rule: FIT-122. */
function open(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(open);
  if (!isRecord(given)) return given;
  const kept = Object.entries(given).filter(([name, of]) => name !== 'additionalProperties' || of !== false);
  return Object.fromEntries(kept.map(([name, of]) => [name, open(of)]));
}

/** Schemas of responses, and the named ones that they refer to. */
export class ResponseSchemas {
  readonly #named = new Map<string, Json>();

  /** Returns the schema of a response; named schemas in it are references. Rules: FIT-121, FIT-122. */
  of(schema: z.ZodType): unknown {
    return open(jsonSchema(schema, 'output', this.#named));
  }

  /** Returns those referred to so far, sorted by name. */
  named(): Json {
    const sorted = [...this.#named].sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(sorted.map(([name, schema]) => [name, open(schema)]));
  }
}
