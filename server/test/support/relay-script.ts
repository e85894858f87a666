import fc from 'fast-check';
import { type Change, outcomes } from './relay-play.ts';
import type { Outcome } from './relay-world.ts';

/** An act in the life of a subscription. */
export type Act =
  | Change
  | {
      readonly does: 'relay';
      readonly crashAt: number;
      readonly holder: string;
      readonly outcomes: readonly Outcome[];
    }
  | { readonly does: 'replay'; readonly back: number }
  | { readonly does: 'requeue' | 'mend' }
  | { readonly does: 'wait'; readonly ms: number };

/** So late a point that it is never reached. */
export const never = 1_000_000;
/** A change to the first user that does not break off. */
export const change = (does: Change['does']): Change => ({ does, whom: 0, breaks: null });

const crashAts = fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 1, max: 40 }) }, fc.constant(never));
const relaying = fc.record({
  does: fc.constant('relay' as const),
  crashAt: crashAts,
  holder: fc.constantFrom('one', 'one', 'two'),
  outcomes: fc.array(fc.constantFrom<Outcome>(...Object.values(outcomes), { kind: 'fine', arrive: 3, told: 0 }), {
    maxLength: 7,
  }),
});
const breaks = fc.oneof(
  { weight: 5, arbitrary: fc.constant(null) },
  fc.constantFrom('before the event' as const, 'before the commit' as const, 'after the commit' as const),
);
const changing: fc.Arbitrary<Change> = fc.record({
  does: fc.constantFrom(
    ...(['create', 'create', 'rename', 'rename', 'poison', 'delete', 'restore'] as const),
    ...(['organization', 'group', 'nonsense'] as const),
  ),
  whom: fc.nat({ max: 2 }),
  breaks,
});
const moving = fc.constantFrom(-3_600_000, -5_000, 30, 61_000).map((ms) => ({ does: 'wait' as const, ms }));
const asking = fc.oneof(
  fc.record({ does: fc.constant('replay' as const), back: fc.nat({ max: 6 }) }),
  fc.record({ does: fc.constantFrom('requeue' as const, 'mend' as const) }),
);
/** Long lives of one subscription: a sequence of acts. */
export const lives: fc.Arbitrary<readonly Act[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: changing },
    { weight: 4, arbitrary: relaying },
    { weight: 1, arbitrary: asking },
    { weight: 1, arbitrary: moving },
  ),
  { minLength: 8, maxLength: 20 },
);

interface Turn {
  readonly lane: number;
  readonly moves: number;
}

/** Concurrent acts: changes, the relays of two nodes, and the number of moves of each. */
export interface Together {
  readonly changes: readonly Act[];
  readonly relays: readonly Extract<Act, { does: 'relay' }>[];
  readonly turns: readonly Turn[];
}

/** Any of that. */
export const together: fc.Arbitrary<Together> = fc.record({
  changes: fc.array(fc.oneof({ weight: 3, arbitrary: changing }, { weight: 2, arbitrary: asking }, moving), {
    minLength: 3,
    maxLength: 7,
  }),
  relays: fc.array(relaying, { minLength: 2, maxLength: 4 }),
  turns: fc.array(fc.record({ lane: fc.nat({ max: 2 }), moves: fc.integer({ min: 1, max: 20 }) }), {
    minLength: 4,
    maxLength: 12,
  }),
});
