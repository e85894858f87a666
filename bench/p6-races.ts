import { Agent } from 'node:http';
import { issueToken, startServer } from './latchkey.ts';
import { send } from './fixed-rate.ts';
import { end } from './pinned.ts';
import { timedRequest } from './timed-request.ts';

const racing = 4;
/** Checks that are under way when the token is revoked, and those that are sent once that was answered. */
const [underWay, afterwards] = [3, 2];

/** One race: answers how often the token was good after its revocation was answered, and before. */
async function race(caller, { tokenId, accessToken }) {
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
  if (strange.length > 0) throw new Error(`a check was answered ${strange[0].status}`);
  const good = (answers) => answers.filter(({ status }) => status === '200').length;
  return { late: good(after), early: good(before) };
}

async function freshToken(caller, number) {
  const json = { name: `race ${number}`, scopes: ['org:read'], expiryDays: 'never' };
  const { body } = await timedRequest(caller, { method: 'POST', path: '/personal-access-tokens', json });
  const { id, accessToken } = JSON.parse(body).token;
  return { tokenId: id, accessToken };
}

/**
 * P6: a token is checked while it is revoked, and again the moment that is answered. Returns `{ late: { races, count,
 * early } }`: how many checks succeeded that were sent after the answer, and how many of those that were under way.
 */
export async function measureRaces({ tries, tell }) {
  const server = await startServer({ core: 'others' });
  const { token } = await issueToken(server.api, ['org:read', 'token:read', 'token:write']);
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
  await end(server.child);
  return { late: { races, count: late, early } };
}
