import { z } from 'zod';
import { idPattern } from '../base/ids.ts';

/**
 * Names of schemas of responses: a client has a type of that name, and the document a component. A derived schema is
 * another one, and has another name or none. Rule: FIT-121.
 */
export const components = z.registry<{ id: string }>();

/** An id on the wire, accepted in either case and taken as lower case. Rules: HTTP-19, HTTP-20. */
export const id = z.string().toLowerCase().regex(idPattern, 'must be 24 hexadecimal characters');

const idProblemsMax = 20;

function idList(lengthMin: number) {
  return z
    .array(z.unknown())
    .min(lengthMin)
    .transform((given, context) => {
      const found: string[] = [];
      for (const [place, one] of given.entries()) {
        const parsed = id.safeParse(one);
        if (parsed.success) found.push(parsed.data);
        else
          context.issues.push({
            code: 'custom',
            path: [place],
            input: one,
            message: 'must be 24 hexadecimal characters',
          });
        if (context.issues.length >= idProblemsMax) break;
      }
      return found;
    })
    .meta({ items: { type: 'string', pattern: idPattern.source }, examples: [['0123456789abcdef01234567']] });
}

/** Ids on the wire, at least one; a limited number of wrong ones is named in the error. */
export const ids = idList(1);
/** As `ids`, and perhaps none. */
export const idsOrNone = idList(0);

/** An id in a response. */
export const idResponse = z.string().meta({ pattern: '^[a-f0-9]{24}$' });

/** Description of a secret in the response of an operation that takes an `Idempotency-Key`. Rule: FIT-136. */
export const notRepeated = 'Absent in a response that is repeated for an Idempotency-Key: the secret is not stored';

/** A time in a response: ISO 8601 in UTC with milliseconds. Rule: ERR-7. */
export const timestamp = z.string().meta({ format: 'date-time' });

/** An integer in the query, as text without sign or padding. Anything else is rejected. Rule: HTTP-21. */
export function queryNumber({ min, max }: { readonly min: number; readonly max: number }) {
  return z
    .string()
    .regex(/^(0|[1-9]\d{0,8})$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`))
    .meta({ type: 'integer', minimum: min, maximum: max });
}

/** A time in the query: a date, or a date and time with its offset from UTC; parsed to milliseconds since 1970. */
export const queryTime = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], 'must be a date and time such as 2026-11-27T20:17:00Z')
  .transform((text) => Date.parse(text))
  .meta({ type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}(T.+)?$', examples: ['2026-11-27T20:17:00Z', '2026-11-27'] });

/** A time in the query as `queryTime`, or in milliseconds since 1970. */
export const queryTimeOrMs = z
  .union(
    [
      queryTime,
      z
        .string()
        .regex(/^\d{1,15}$/)
        .transform(Number),
    ],
    'must be a date and time such as 2026-11-27T20:17:00Z, or milliseconds since 1970',
  )
  .meta({
    type: 'string',
    pattern: '^(\\d{4}-\\d{2}-\\d{2}(T.+)?|\\d{1,15})$',
    examples: ['2026-11-27T20:17:00Z', '1795810620000'],
  });

/**
 * The parameters of a list: an unknown one is 400, with the name that was probably meant. Otherwise a misspelled filter
 * would return everything. Each list has them, also one without any. Rule: CRED-3.
 */
export function listQuery<const S extends z.core.$ZodLooseShape>(parameters: S) {
  return z.strictObject(parameters);
}

/** The response of operations that only confirm success. */
export const messageResponse = z.object({ message: z.string() }).register(components, { id: 'Message' });

const neededInput = new WeakSet<z.core.$ZodType>();

/**
 * A required input whose absence the operation rejects with its own error rather than as invalid input. Documented as
 * required. To be called last: schemas derived from the result are ordinary optional inputs again.
 */
export function needed<S extends z.ZodType>(schema: S): z.ZodOptional<S> {
  const made = schema.optional();
  neededInput.add(made);
  return made;
}

function namesOfNeeded(schema: z.core.$ZodType): string[] {
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries<z.core.$ZodType>(schema.shape).flatMap(([name, of]) => (neededInput.has(of) ? [name] : []));
}

type JsonSchema = Record<string, unknown>;

/** Turns the JSON Schema of a named schema into a reference, and adds what it was to the named ones. */
function refer(schema: z.core.$ZodType, made: JsonSchema, named: Map<string, JsonSchema>): void {
  const id = components.get(schema)?.id;
  if (id === undefined || '$ref' in made) return;
  const { $schema: _, ...rest } = made;
  named.set(id, rest);
  for (const key of Object.keys(made)) delete made[key];
  made['$ref'] = `#/components/schemas/${id}`;
}

/**
 * Converts a zod schema to JSON Schema 2020-12, as clients see it: `input` for requests, `output` for responses. Where
 * `named` is given, schemas with a name become references, and what they refer to is added there.
 */
export function jsonSchema(schema: z.ZodType, io: 'input' | 'output', named?: Map<string, JsonSchema>): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema: made }) => {
      // A number in the query arrives as text; the document describes the number.
      if (made.type === 'integer') delete made.pattern;
      // Text is described in words, not by the patterns of its forms.
      if (made.type === 'string') delete made.anyOf;
      if (io === 'output') {
        if (named) refer(zodSchema, made, named);
        return;
      }
      // Left out where the value is transformed; our examples are of the sent form.
      const examples = z.globalRegistry.get(zodSchema)?.['examples'];
      if (Array.isArray(examples)) made.examples = examples;
      const names = namesOfNeeded(zodSchema);
      if (names.length > 0) made.required = [...(made.required ?? []), ...names];
    },
  });
  return rest;
}

/** Returns whether an unknown name is rejected. Rules: CRED-2, CRED-3. */
export function isStrict(schema: z.ZodType | undefined): boolean {
  const given = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
  return given instanceof z.ZodObject && given.def.catchall instanceof z.ZodNever;
}
