import { Agent } from 'node:http';
import { send } from './fixed-rate.ts';
import { createOrganization, startServer } from './latchkey.ts';
import type { Measuring } from './rows.ts';
import { type Caller, timedRequest } from './timed-request.ts';

const racing = 4;
/** Checks that are under way when the token is revoked, and those that are sent once that was answered. */
const [underWay, afterwards] = [3, 2];

type Racer = Caller & { readonly port: number };

interface Raced {
  readonly tokenId: string;
  readonly accessToken: string;
}

/** What P6 counted. */
export interface Races {
  readonly races: number;
  /** Checks that succeeded although they were sent after the revocation was answered. */
  readonly late: number;
  /** Those that were under way and succeeded. */
  readonly early: number;
}

/** One race: returns how often the token was good after its revocation was answered, and before. */
async function race(caller: Racer, { tokenId, accessToken }: Raced): Promise<Omit<Races, 'races'>> {
  const check = () =>
    send(
      { port: caller.port, path: '/api/v1/org', method: 'GET', headers: { authorization: `Bearer ${accessToken}` } },
      Buffer.alloc(0),
    );
  const racers = Array.from({ length: underWay }, check);
  await timedRequest(caller, { method: 'DELETE', path: `/personal-access-tokens/${tokenId}` });
  const after = await Promise.all(Array.from({ length: afterwards }, check));
  const before = await Promise.all(racers);
  const strange = [...before, ...after].filter(({ status }) => !['200', '401'].includes(status));
  if (strange[0]) throw new Error(`a check was answered ${strange[0].status}`);
  const good = (responses: typeof before) => responses.filter(({ status }) => status === '200').length;
  return { late: good(after), early: good(before) };
}

async function freshToken(caller: Caller, number: number): Promise<Raced> {
  const json = { name: `race ${number}`, scopes: ['org:read'], expiryDays: 'never' };
  const { body } = await timedRequest(caller, { method: 'POST', path: '/personal-access-tokens', json });
  const { id, accessToken } = JSON.parse(body.toString()).token;
  return { tokenId: id, accessToken };
}

/** P6: a token is checked while it is revoked, and again the moment that is answered. */
export async function measureRaces(tries: number, { tell }: Measuring): Promise<Races> {
  const server = await startServer({ core: 'others' });
  const { token } = await createOrganization(server.client, ['org:read', 'token:read', 'token:write']);
  let [races, late, early] = [0, 0, 0];
  const racer = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const caller = { ...server, headers: { authorization: `Bearer ${token}` }, agent };
    while (races < tries) {
      races += 1;
      const outcome = await race(caller, await freshToken(caller, races));
      late += outcome.late;
      early += outcome.early;
      if (races % 2_000 === 0) tell(`P6: ${races} of ${tries} races, ${late} checks succeeded that must not`);
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: racing }, racer));
  await server.program.end();
  return { races, late, early };
}
