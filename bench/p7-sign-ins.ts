import { fileURLToPath } from 'node:url';
import { startLatchkey } from './latchkey.ts';
import { measureTurns } from './latency-turns.ts';
import type { Rounds, Turn } from './rows.ts';

const script = fileURLToPath(new URL('./sign-in-caller.ts', import.meta.url));
/** More than one core can hash: what is too much is to be refused quickly. */
const perSecond = 50;

/** P7: the latency of token checks idle and while people sign in. Returns one turn a round. */
export async function measureSignIns(options: Rounds): Promise<readonly Turn[]> {
  const started = await startLatchkey({ core: 'others' });
  const { port, user } = started;
  const work = { name: 'sign-ins', good: '200', script, orders: { port, perSecond, user } };
  return measureTurns({ id: 'P7', started, work }, options);
}
