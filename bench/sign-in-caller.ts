// Signs a user in at a fixed rate in a process of its own. Reads its orders from the variable `WORK`:
// { port, perSecond, person: { email, password } }. See actAtRate for how it ends.
import { actAtRate, send } from './fixed-rate.ts';

const { port, perSecond, person: user } = JSON.parse(process.env['WORK'] ?? '{}');
const { email, password } = user;
const json = { 'content-type': 'application/json' };
const begun = Buffer.from(JSON.stringify({ email }));
const proof = Buffer.from(JSON.stringify({ method: 'password', credentials: { password }, email }));

function call(name: string, headers: Readonly<Record<string, unknown>>, body: Buffer) {
  return send({ port, path: `/api/v1/userAccount/${name}`, method: 'POST', headers: { ...json, ...headers } }, body);
}

actAtRate({ perSecond, good: '200' }, async () => {
  const { status, headers } = await call('initAuth', {}, begun);
  if (status !== '200') return status;
  return (await call('authenticate', { 'x-session-token': headers['x-session-token'] }, proof)).status;
});
