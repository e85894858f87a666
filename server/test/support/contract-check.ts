import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { openApiDocument } from '../../src/http/openapi/openapi.ts';
import { routes } from '../../src/routes.gen.ts';

interface Operation {
  readonly 'x-passed-answers'?: true;
  readonly responses: Readonly<Record<string, { $ref?: string; content?: { 'application/json': { schema: object } } }>>;
}

const document = openApiDocument(routes) as {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Readonly<Record<string, object>> };
};
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
const compiled = new Map<object, ValidateFunction>();
const templates = Object.keys(document.paths)
  .sort((a, b) => a.split('{').length - b.split('{').length)
  .map((template) => ({ template, form: new RegExp(`^${template.replace(/\{\w+\}/g, '[^/]+')}$`) }));

/**
 * Returns the schema with its references resolved and without room for members that it does not declare: clients have to
 * expect some, but this release sends none. Rule: FIT-122.
 */
function closed(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(closed);
  if (typeof given !== 'object' || given === null) return given;
  if ('$ref' in given) return closed(document.components.schemas[String(given.$ref).split('/').at(-1) ?? '']);
  const members = Object.fromEntries(Object.entries(given).map(([name, of]) => [name, closed(of)]));
  return 'properties' in members && !('additionalProperties' in members)
    ? { ...members, additionalProperties: false }
    : members;
}

function validatorOf(schema: object): ValidateFunction {
  const known = compiled.get(schema) ?? ajv.compile(Object(closed(schema)));
  compiled.set(schema, known);
  return known;
}

function templateOf(path: string): string | undefined {
  return templates.find(({ form }) => form.test(path))?.template;
}

interface CheckedResponse {
  readonly status: number;
  readonly body: unknown;
  /** There is a connector backend: the body of a success is its own then, where it may be passed on. */
  readonly hasBackend?: boolean;
}

/** Throws when an answer is not one that the OpenAPI document declares. Rule: RUN-9. */
export function checkAgainstContract(method: string, url: string, response: CheckedResponse): void {
  const path = url.split('?')[0] ?? url;
  const operation = document.paths[templateOf(path) ?? '']?.[method.toLowerCase()];
  if (response.hasBackend && operation?.['x-passed-answers'] && response.status < 300) return;
  const declared = operation?.responses[String(response.status)]?.content?.['application/json'].schema;
  if (response.status < 400 && !declared) return;
  const error = operation?.responses['default']?.$ref?.split('/').at(-1) ?? 'ApiError';
  const validate = validatorOf(declared ?? document.components.schemas[error] ?? {});
  if (validate(response.body)) return;
  const problems = JSON.stringify(validate.errors, null, 1);
  throw new Error(`${method} ${url} answered ${response.status} against its contract: ${problems}`);
}
