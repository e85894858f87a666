import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tries } from '../support/effort.ts';
import { Interleaver } from '../support/interleaving.ts';
import { type Change, outcomes, Play } from '../support/relay-play.ts';
import { type Act, change, lives, never, type Together, together } from '../support/relay-script.ts';
import { brokenTwins } from '../support/relay-twins.ts';
import { Life, type Outcome, type Twin } from '../support/relay-world.ts';
import { type Client, TestApp } from '../support/test-app.ts';

let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start();
  const ada = await app.setUp();
  admin = await ada.token({ expiryDays: 'never' });
});
afterAll(() => app.close());

interface Acting {
  readonly lifeOf: (crashAt: number) => Life;
  readonly patience: number;
}

const alone: Acting = { lifeOf: (crashAt) => new Life(crashAt), patience: Number.POSITIVE_INFINITY };

async function act(play: Play, one: Act, { lifeOf, patience }: Acting = alone): Promise<void> {
  switch (one.does) {
    case 'relay':
      play.receiver.outcomes = [...one.outcomes];
      await play.relay(lifeOf(one.crashAt), one.holder, patience);
      break;
    case 'replay':
      await play.replay(one.back);
      break;
    case 'requeue':
      await play.requeue();
      break;
    case 'mend':
      play.receiver.isMended = !play.receiver.isMended;
      break;
    case 'wait':
      app.clock.advance(one.ms);
      break;
    default:
      await play.change(one);
  }
}

/** Plays acts one after another; answers all that is wrong in the end. */
async function playAll(acts: readonly Act[], twin: Twin = {}): Promise<readonly string[]> {
  const play = await Play.begin({ app, admin }, twin);
  for (const one of acts) await act(play, one);
  return play.settle();
}

const few = [change('create'), change('rename'), change('organization'), change('delete')];
const fewWithPoison = [change('create'), change('poison'), change('organization')];
/** Possible fates of a few events. */
const ways: readonly (readonly [string, readonly Change[], readonly Outcome[]])[] = [
  ['all is well', few, []],
  ['an answer is lost', few, [outcomes.lost]],
  ['a part arrives', few, [outcomes.part, outcomes.silent, outcomes.down]],
  ['one is refused', fewWithPoison, [outcomes.part, outcomes.down]],
];

describe('a relay that ends at any point', () => {
  it.each(ways)(
    'loses nothing when %s, wherever it ends, anyone who goes on (D1, EVENT-8, EVENT-9, EVENT-22, EVENT-23)',
    async (_, changes, way) => {
      const play = await Play.begin({ app, admin });
      for (const one of changes) await act(play, one);
      const whole = new Life();
      play.receiver.outcomes = [...way];
      await play.relay(whole, 'one');
      expect(whole.points).toBeGreaterThan(20);
      expect(await play.settle()).toEqual([]);
      for (let crashAt = 1; crashAt <= whole.points; crashAt += 1) {
        const again = await Play.again(play);
        again.receiver.outcomes = [...way];
        expect(await again.relay(new Life(crashAt), 'one')).toBe(true);
        if (crashAt % 4 === 0) await again.relay(new Life(crashAt), 'two');
        expect([crashAt, ...(await again.settle())]).toEqual([crashAt]);
      }
    },
  );

  it('loses, invents and swaps nothing over long lives of changes, crashes, replays and refusals (D1, EVENT-4 to EVENT-10, EVENT-17, EVENT-19, EVENT-23)', async () => {
    const property = fc.asyncProperty(lives, async (acts) => {
      expect(await playAll(acts)).toEqual([]);
    });
    await fc.assert(property, { numRuns: tries(25) });
  }, 120_000);
});

/** Asks for events again at each point of a relay in turn; answers all that is wrong. */
async function replayAnywhere(twin: Twin = {}): Promise<readonly string[]> {
  const play = await Play.begin({ app, admin }, twin);
  for (const one of few) await act(play, one);
  const whole = new Life();
  await play.relay(whole, 'one');
  const faults: string[] = [];
  for (let at = 1; at <= whole.points; at += 1) {
    const again = await Play.again(play);
    const life: Life = new Life(never, async () => {
      if (life.points === at) await again.replay(2);
    });
    await again.relay(life, 'one');
    faults.push(...(await again.settle()));
  }
  return faults;
}

describe('events that are asked for again', () => {
  it('come again, whatever the relay is about at that moment (EVENT-10, EVENT-22)', async () => {
    expect(await replayAnywhere()).toEqual([]);
  });
});

/** Plays changes and two relays at once, of which at every point another may go on; answers all that is wrong. */
async function playTogether({ changes, relays, turns }: Together, twin: Twin = {}): Promise<readonly string[]> {
  const play = await Play.begin({ app, admin }, twin);
  // There is something to go back to.
  for (const one of few) await act(play, one);
  await act(play, { does: 'relay', crashAt: never, holder: 'one', outcomes: [] });
  const interleaver = new Interleaver();
  const turn = () => interleaver.pass();
  const acting: Acting = { lifeOf: (crashAt) => new Life(crashAt, turn), patience: 2 };
  const lane = (acts: readonly Act[]) => async () => {
    for (const one of acts) {
      await turn();
      await act(play, one, acting);
    }
  };
  // A store that is held by one process has one relay after another: two at once are two nodes.
  const of = (holder: string) =>
    relays.filter((_, place) => (place % 2 === 0) === (holder === 'one')).map((one) => ({ ...one, holder }));
  const order = turns.flatMap(({ lane: chosen, moves }) => Array.from({ length: moves }, () => chosen));
  let moves = 0;
  await interleaver.run(
    [lane(changes), lane(of('one')), lane(of('two'))],
    (count) => (order[moves++ % order.length] ?? 0) % count,
    () => {},
  );
  return play.settle();
}

describe('two relays of one subscription at once, while events come and are asked for again', () => {
  it('lose, invent and swap nothing, anyone who stops where and for how long (D1, EVENT-9, EVENT-10, EVENT-22)', async () => {
    const property = fc.asyncProperty(together, async (given) => {
      expect(await playTogether(given)).toEqual([]);
    });
    await fc.assert(property, { numRuns: tries(25) });
  }, 120_000);
});

/** Plays until a fault of some kind was seen; answers the first word of those that were. */
async function faultsOf<T>(given: fc.Arbitrary<T>, play: (one: T) => Promise<readonly string[]>): Promise<Set<string>> {
  const seen = new Set<string>();
  const property = fc.asyncProperty(given, async (one) => {
    for (const fault of await play(one)) seen.add(fault.split(':')[0] ?? '');
    return seen.size === 0;
  });
  await fc.check(property, { numRuns: 200, endOnFailure: true });
  return seen;
}

describe('a broken twin of that is found out', () => {
  it('that marks before it publishes', async () => {
    const seen = await faultsOf(lives, (acts) => playAll(acts, brokenTwins.markedFirst));
    expect(seen).toContain('lost');
  });

  it('that goes on after a moment in place of a number', async () => {
    const seen = await faultsOf(lives, (acts) => playAll(acts, brokenTwins.byMoment));
    expect(seen).toContain('lost');
  });

  it('that publishes before the commit', async () => {
    const seen = await faultsOf(lives, (acts) => playAll(acts, brokenTwins.publishedFirst));
    expect(seen).toContain('invented');
  });

  it('that writes events after the commit', async () => {
    const seen = await faultsOf(lives, (acts) => playAll(acts, brokenTwins.writtenLate));
    expect(seen).toContain('change');
  });

  it('that moves on wherever it was moved meanwhile', async () => {
    expect(await replayAnywhere(brokenTwins.careless)).toContainEqual(expect.stringMatching(/^replay: /));
  });
});

describe('the end of the organization', () => {
  it('goes out as everything before it, and nothing after (D1, EVENT-4, EVENT-8)', async () => {
    const play = await Play.begin({ app, admin });
    await act(play, change('create'));
    expect((await admin.delete('/org')).status).toBe(200);
    await play.relay(new Life(9), 'one');
    await play.relay(new Life(), 'one');
    const types = [
      ...new Map(play.receiver.arrivals.map(({ envelope }) => [envelope.id, envelope.eventType])).values(),
    ];
    expect(types).toEqual(['userAdded', 'orgDeleted']);
  });
});
