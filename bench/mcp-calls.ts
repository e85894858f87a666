// The rows MCP: a tool called over /mcp, against the same operation over HTTP.
import { rate } from './formats.ts';
import { startLatchkey } from './latchkey.ts';
import { fetchBody, runLoad } from './load.ts';
import type { Measured, Rounds, Row, Sides, Target } from './rows.ts';

const warmUpSeconds = 3;
const revision = '2025-11-25';

function callOf(server: Target, name: string, given: object): Target {
  return {
    ...server,
    name: `${name} over /mcp`,
    path: '/mcp',
    headers: {
      ...server.headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': revision,
    },
    payload: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }),
  };
}

interface Ways<T extends Target> {
  readonly subject: T;
  readonly peer: T;
}

/** By the name of the tool, the two ways to the same thing. */
function waysOf(server: Target): Readonly<Record<string, Ways<Target>>> {
  const id = server.path.split('/').at(-1);
  const list = { ...server, name: 'GET /users?page=1', path: '/api/v1/users?page=1' };
  return {
    get_user: { subject: callOf(server, 'get_user', { id }), peer: { ...server, name: 'GET /users/:id' } },
    list_users: { subject: callOf(server, 'list_users', {}), peer: list },
  };
}

async function requireSame({ subject, peer }: Ways<Target>): Promise<Ways<Measured>> {
  const [called, responded] = await Promise.all([fetchBody(subject), fetchBody(peer)]);
  const { result } = JSON.parse(called.toString('utf8'));
  if (JSON.stringify(result.structuredContent) !== responded.toString('utf8')) {
    throw new Error(`${subject.name} doesn't answer what ${peer.name} does: ${called.toString('utf8')}`);
  }
  return { subject: { ...subject, body: called }, peer: { ...peer, body: responded } };
}

/**
 * Lets the two ways of each of these rows take turns at one server, `rounds` times. Returns, by the name of the tool, one
 * `{ subject, peer }` a round, as the generator measured them.
 */
export async function measureCalls(rows: readonly Row[], { seconds, rounds, tell }: Rounds) {
  tell('MCP: starting latchkey');
  const ways = waysOf(await startLatchkey());
  const results: Record<string, readonly Sides[]> = {};
  for (const { part = '' } of rows) {
    const way = ways[part];
    if (!way) throw new Error(`there is no tool ${part}`);
    const same = await requireSame(way);
    for (const target of [same.peer, same.subject]) await runLoad(target, { seconds: warmUpSeconds });
    const measured: Sides[] = [];
    for (let round = 1; round <= rounds; round++) {
      const peer = await runLoad(same.peer, { seconds });
      const subject = await runLoad(same.subject, { seconds });
      measured.push({ subject, peer });
      tell(`round ${round} of ${rounds}  ${same.subject.name} ${rate(subject)}, ${same.peer.name} ${rate(peer)}`);
    }
    results[part] = measured;
  }
  return results;
}
