// A connector backend over HTTP: what `npm run connector` starts, and what tests start in their own process.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Directory, Refusal } from './directory.mjs';
import { tokenVerifier } from './tokens.mjs';

const bodyBytesMax = 1_048_576;
const base = '/api/v1/entity';

/** @typedef {import('./directory.mjs').Known} Known */
/** @typedef {{ directory: Directory, verify: ReturnType<typeof tokenVerifier> }} Parts */
/**
 * @typedef {object} Asked
 * @property {Directory} directory
 * @property {import('./directory.mjs').Caller} caller
 * @property {import('./directory.mjs').Query} query
 * @property {string} id of the team in the address
 * @property {any} body
 */

/**
 * Each operation: its method, the form of its address below the base, and what it does.
 * @type {readonly (readonly [string, RegExp, (asked: Asked) => Record<string, unknown>])[]}
 */
const operations = [
  ['GET', /^\/user\/list$/, ({ directory, caller, query }) => directory.users(caller, query)],
  ['GET', /^\/user\/teams$/, ({ directory, caller, query }) => directory.teams(caller, query)],
  ['POST', /^\/team$/, ({ directory, caller, body }) => ({ status: 201, team: directory.create(caller, body) })],
  ['GET', /^\/team\/([\w-]+)$/, ({ directory, caller, id }) => ({ team: directory.team(caller, id) })],
  ['PUT', /^\/team\/([\w-]+)$/, ({ directory, caller, id, body }) => ({ team: directory.update(caller, id, body) })],
  ['DELETE', /^\/team\/([\w-]+)$/, ({ directory, caller, id }) => ({ none: directory.remove(caller, id) })],
  ['GET', /^\/team\/([\w-]+)\/users$/, ({ directory, caller, id, query }) => directory.members(caller, id, query)],
];

async function readBody(/** @type {import('node:http').IncomingMessage} */ request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > bodyBytesMax) throw new Refusal(413, 'The body is too large');
    chunks.push(chunk);
  }
  if (length === 0) return {};
  try {
    const body = JSON.parse(Buffer.concat(chunks).toString());
    if (typeof body === 'object' && body !== null) return body;
  } catch {
    // Said below.
  }
  throw new Refusal(400, 'The body is no JSON object');
}

function queryOf(/** @type {URLSearchParams} */ searchParams) {
  const number = (/** @type {string} */ name, /** @type {number} */ fallback) =>
    Number(searchParams.get(name) ?? fallback);
  return {
    page: number('page', 1),
    limit: number('limit', 25),
    search: searchParams.get('search') ?? '',
    madeBy: searchParams.get('created_by'),
    sinceMs: number('created_after', 0),
    untilMs: number('created_before', Number.POSITIVE_INFINITY),
  };
}

async function answerTo(
  /** @type {import('node:http').IncomingMessage} */ request,
  /** @type {Parts} */ { directory, verify },
) {
  const claims = await verify(request.headers.authorization);
  if (!claims) throw new Refusal(401, 'No good token');
  const { userId, orgId, fullName: name, email } = claims;
  directory.know({ userId, orgId, name, email });
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://backend');
  if (!pathname.startsWith(base)) throw new Refusal(404, 'Not found');
  for (const [method, form, operate] of operations) {
    const match = method === request.method && form.exec(pathname.slice(base.length));
    if (!match) continue;
    const body = await readBody(request);
    return operate({ directory, caller: { userId, orgId }, query: queryOf(searchParams), id: match[1] ?? '', body });
  }
  throw new Refusal(404, 'Not found');
}

function send(
  /** @type {import('node:http').ServerResponse} */ response,
  /** @type {number} */ status,
  /** @type {object} */ body,
) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function respond(
  /** @type {import('node:http').IncomingMessage} */ request,
  /** @type {import('node:http').ServerResponse} */ response,
  /** @type {Parts} */ parts,
) {
  try {
    const { status = 200, ...answer } = await answerTo(request, parts);
    send(response, Number(status), { status: 'success', message: 'Done', ...answer });
  } catch (error) {
    send(response, error instanceof Refusal ? error.status : 500, {
      status: 'error',
      message: error instanceof Error ? error.message : String(error),
    });
  }
}

/**
 * Starts a connector backend that keeps everything in memory. It knows the people that it is told of, and whoever shows
 * a good token. `jwksUrl` may be a function; `port` 0 takes any free one, on loopback.
 * @param {{ port?: number, jwksUrl?: string | (() => string), secret?: string, people?: Known[], now?: () => number }} options
 */
export async function startConnectorBackend({ port = 0, jwksUrl, secret, people = [], now = Date.now } = {}) {
  const directory = new Directory(now);
  for (const person of people) directory.know(person);
  const parts = { directory, verify: tokenVerifier({ jwksUrl, secret, now }) };
  const server = createServer((request, response) => void respond(request, response, parts));
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${Object(server.address()).port}`,
    know: (/** @type {Known} */ person) => directory.know(person),
    forget: (/** @type {string} */ userId) => directory.forget(userId),
    close: () => {
      server.closeAllConnections();
      return once(server.close(), 'close');
    },
  };
}
