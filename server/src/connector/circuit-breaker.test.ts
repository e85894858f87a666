import { expect, it } from 'vitest';
import { TestClock } from '../../test/support/test-clock.ts';
import { second } from '../base/clock.ts';
import { ApiError } from '../base/errors.ts';
import { circuitBreaker } from './circuit-breaker.ts';
import { refuseResponse, refuseTimeout, refuseUnavailable } from './connector-errors.ts';

/** A breaker, and the work that was given to it: each piece ends when the test says so. */
function rig() {
  const clock = new TestClock();
  const breaker = circuitBreaker(clock);
  const begun: { succeed: () => void; fail: (error: Error) => void }[] = [];
  const run = (sender?: string) =>
    breaker
      .run(
        () =>
          new Promise<void>((succeed, fail) => {
            begun.push({ succeed, fail });
          }),
        sender,
      )
      .then(
        () => 'done',
        (error: unknown) => (error instanceof ApiError ? error.errorName : String(error)),
      );
  const end = async (error: Error | null, sender?: string) => {
    const outcome = run(sender);
    const work = begun.at(-1);
    if (error) work?.fail(error);
    else work?.succeed();
    return outcome;
  };
  return { clock, begun, run, end };
}

const lost = refuseUnavailable('lost');

it('opens with the fifth failure in a row', async () => {
  const { begun, end, run } = rig();
  for (let count = 0; count < 4; count += 1) await end(lost);
  await end(null);
  for (let count = 0; count < 4; count += 1) await end(refuseTimeout('slow'));
  await end(refuseResponse('bad'));
  for (let count = 0; count < 5; count += 1) await end(lost);
  expect(begun).toHaveLength(15);
  expect(await run()).toBe('connectorUnavailable');
  expect(begun).toHaveLength(15);
});

it('lets one through after its time, while others go on being refused; only its outcome counts', async () => {
  const { clock, begun, end, run } = rig();
  for (let count = 0; count < 5; count += 1) await end(lost);
  clock.advance(5 * second - 1);
  expect(await run()).toBe('connectorUnavailable');
  clock.advance(1);
  const tried = run();
  expect(await run()).toBe('connectorUnavailable');
  expect(begun).toHaveLength(6);
  begun[5]?.succeed();
  expect(await tried).toBe('done');
  expect(await end(null)).toBe('done');
});

it('stays open for its time, whatever began before it opened and fails after', async () => {
  const { clock, begun, end, run } = rig();
  const late = run();
  for (let count = 0; count < 5; count += 1) await end(lost);
  clock.advance(4 * second);
  begun[0]?.fail(lost);
  await late;
  clock.advance(second);
  expect(await end(lost)).toBe('connectorUnavailable');
  expect(begun).toHaveLength(7);
  clock.advance(4 * second);
  await run();
  expect(begun).toHaveLength(7);
});

it('is not kept open by a clock that is set back', async () => {
  const { clock, end } = rig();
  for (let count = 0; count < 5; count += 1) await end(lost);
  clock.advance(-3_600 * second);
  expect(await end(null)).toBe('done');
});

it('lets faults of our own through as they are, and goes on trying after one', async () => {
  const { clock, end } = rig();
  for (let count = 0; count < 5; count += 1) await end(lost);
  clock.advance(5 * second);
  expect(await end(new Error('mine'))).toBe('Error: mine');
  expect(await end(null)).toBe('done');
});

it('stays closed for time-outs of one sender alone, and opens as soon as another has one too (TEAM-30)', async () => {
  const { begun, end, run } = rig();
  for (let count = 0; count < 20; count += 1) await end(refuseTimeout('slow'), 'ann');
  expect(begun).toHaveLength(20);
  await end(refuseTimeout('slow'), 'bob');
  expect(await run('carl')).toBe('connectorUnavailable');
  expect(begun).toHaveLength(21);
});

it('opens for one sender where the backend cannot be reached at all (TEAM-30)', async () => {
  const { end, run } = rig();
  for (let count = 0; count < 5; count += 1) await end(lost, 'ann');
  expect(await run('bob')).toBe('connectorUnavailable');
});
