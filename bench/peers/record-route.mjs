import { createRequire } from 'node:module';

/**
 * `require` as the server's own code resolves it: the peers run on exactly the Fastify and the
 * better-sqlite3 that Latchkey runs on, and no second native build is needed.
 */
export const requireFromServer = createRequire(new URL('../../server/package.json', import.meta.url));

/** The path that every measured process answers. */
export const recordPath = '/api/v1/users/:id';

/**
 * The user record to answer, handed over by the runner in the variable `USER_RECORD` as JSON.
 * Throws when it is missing: a peer never makes up its own answer.
 */
export function recordFromEnvironment() {
  const text = process.env['USER_RECORD'];
  if (!text) throw new Error('USER_RECORD must hold the JSON to answer');
  return JSON.parse(text);
}

/**
 * A JSON schema that fits `value` with all its fields, for Fastify's compiled serializer: the fastest way Fastify
 * has to answer known JSON.
 * @returns {object}
 */
export function schemaFor(/** @type {unknown} */ value) {
  if (value === null) return { type: 'null' };
  if (Array.isArray(value)) return { type: 'array', items: value.length > 0 ? schemaFor(value[0]) : {} };
  if (typeof value !== 'object') return { type: typeof value };
  const properties = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, schemaFor(field)]));
  return { type: 'object', properties };
}

/**
 * Listens on a free port of the loopback interface, tells the runner in one line of JSON (with what it needs
 * to call: `headers`), and closes on SIGTERM.
 */
export async function serve(
  /** @type {import('fastify').FastifyInstance} */ app,
  /** @type {Readonly<Record<string, string>>} */ headers = {},
) {
  await app.listen({ host: '127.0.0.1', port: 0 });
  process.once('SIGTERM', () => void app.close().then(() => process.exit(0)));
  console.log(JSON.stringify({ ready: true, port: Object(app.server.address()).port, headers }));
}
