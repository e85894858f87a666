import { randomUUID } from 'node:crypto';
import type { Relay } from '../../src/outbox/relay/relay.ts';
import { insertRelay } from '../../src/outbox/relay/relay-store.ts';
import { type Asked, faultsOfArrivals, faultsOfDead, faultsOfLog, faultsOfReplays, type Told } from './relay-faults.ts';
import { type Break, breakingOff, Crash, Life, type Outcome, Receiver, type Twin, withRelay } from './relay-world.ts';
import type { Client, Json, TestApp, TestResponse } from './test-app.ts';

/** Something that an administrator does; it may break off half way. */
export interface Change {
  readonly does: 'create' | 'rename' | 'poison' | 'delete' | 'restore' | 'organization' | 'group' | 'nonsense';
  /** Index of the user, where it is about one. */
  readonly whom: number;
  readonly breaks: Break | null;
}

/** Clients that make changes. */
interface Place {
  readonly app: TestApp;
  readonly admin: Client;
}

const anonymous = 'f'.repeat(24);
const setOf = ({ orgId, _id, email, fullName, firstName, middleName, lastName, designation }: Json) => ({
  orgId,
  userId: _id,
  email,
  fullName,
  ...(firstName === undefined ? {} : { firstName }),
  ...(middleName === undefined ? {} : { middleName }),
  ...(lastName === undefined ? {} : { lastName }),
  ...(designation === undefined ? {} : { designation }),
});

/** Returns the expected event of a user's change, by the record of the user afterwards. */
function toldOf(does: Change['does'], record: Json): Told {
  const { orgId, _id: userId, email, fullName } = record;
  if (does === 'delete') return { eventType: 'userDeleted', payload: { orgId, userId, email } };
  if (does === 'create' || does === 'restore') {
    return { eventType: 'userAdded', payload: { orgId, userId, email, fullName, syncAction: 'immediate' } };
  }
  return { eventType: 'userUpdated', payload: setOf(record) };
}

/**
 * Changes made over the API and relayed by a subscription of their own. The expected events follow from the responses
 * alone.
 */
export class Play {
  readonly receiver = new Receiver();
  readonly name = `entity-events/play-${randomUUID()}`;
  readonly #app: TestApp;
  readonly #admin: Client;
  readonly #twin: Twin;
  readonly #domain = `${randomUUID()}.example`;
  /** The last returned record of each user. */
  readonly #people = new Map<number, Json>();
  readonly #told: Told[] = [];
  readonly #asked: Asked[] = [];
  readonly #faults: string[] = [];
  readonly #from: number;
  #count = 0;

  private constructor({ app, admin }: Place, twin: Twin, from: number) {
    this.#app = app;
    this.#admin = admin;
    this.#twin = twin;
    this.#from = from;
  }

  static async begin(place: Place, twin: Twin = {}): Promise<Play> {
    const { newest } = (await place.admin.get('/events/relays')).body;
    const play = new Play(place, twin, newest);
    await play.#addWayOut();
    return play;
  }

  /** The same changes on another subscription. */
  static async again(play: Play): Promise<Play> {
    const again = new Play({ app: play.#app, admin: play.#admin }, play.#twin, play.#from);
    again.#told.push(...play.#told);
    await again.#addWayOut();
    return again;
  }

  async #addWayOut(): Promise<void> {
    await this.#app.services.db.transaction((tx) => insertRelay(tx, this.name, this.#from));
  }

  /** Everything in the log after a sequence, as a service reads it. */
  async #log(after: number): Promise<Json[]> {
    const all: Json[] = [];
    for (let next = after; ; ) {
      const { body } = await this.#app.service(['EVENTS_READ']).get(`/events?after=${next}&limit=1000`);
      if (body.events.length === 0) return all;
      all.push(...body.events);
      next = body.nextAfter;
    }
  }

  async #find(email: string): Promise<Json> {
    const { body } = await this.#admin.get(`/users?search=${encodeURIComponent(email)}&limit=1`);
    return body.users.find((user: Json) => user.email === email);
  }

  get #orgName(): string {
    return `Name ${this.#count} of ${this.#domain}`;
  }

  #send(change: Change): Promise<TestResponse> {
    this.#count += 1;
    const text = `Name ${this.#count}`;
    if (change.does === 'group')
      return this.#admin.post('/userGroups', { name: `${text} ${this.name}`, type: 'custom' });
    if (change.does === 'organization') return this.#admin.patch('/org', { registeredName: this.#orgName });
    if (change.does === 'nonsense') return this.#admin.post('/users', { fullName: text, email: 'nowhere' });
    const id = this.#people.get(change.whom)?._id ?? anonymous;
    const email = `${change.whom}-${this.#count}@${this.#domain}`;
    switch (change.does) {
      case 'create': {
        const taken = this.#people.get(change.whom)?.email;
        return this.#admin.post('/users', { fullName: text, email: taken ?? email });
      }
      case 'delete':
        return this.#admin.delete(`/users/${id}`);
      case 'restore':
        return this.#admin.post(`/users/${id}/restore`);
      case 'poison':
        return this.#admin.patch(`/users/${id}/designation`, { designation: 'poison' });
      default:
        return this.#admin.put(`/users/${id}`, {
          email: this.#people.get(change.whom)?.email ?? email,
          fullName: text,
          designation: 'Tester',
        });
    }
  }

  /** Makes a change, and derives the expected event from the response, or from a query where there is none. */
  async change(change: Change): Promise<void> {
    const { db } = this.#app.services;
    const { transaction } = db;
    const mayBreak = change.breaks === null ? transaction : breakingOff(transaction, change.breaks);
    db.transaction = this.#twin.change?.(mayBreak, this.receiver) ?? mayBreak;
    let response: TestResponse;
    try {
      response = await this.#send(change);
    } finally {
      db.transaction = transaction;
    }
    if (change.does === 'group' || change.does === 'nonsense' || (response.status >= 400 && response.status < 500))
      return;
    const isDone = response.status < 300 || change.breaks === 'after the commit';
    if (change.does === 'organization') {
      const { body } = await this.#admin.get('/org');
      const isThere = body.registeredName === this.#orgName;
      if (isThere !== isDone) this.#faults.push('change: the organization is not as it was answered');
      const payload = { orgId: body._id, registeredName: body.registeredName };
      if (isThere) this.#told.push({ eventType: 'orgUpdated', payload });
      return;
    }
    await this.#learn(change, response, isDone);
  }

  async #learn(change: Change, response: TestResponse, isDone: boolean): Promise<void> {
    const { does, whom } = change;
    const known = this.#people.get(whom);
    const found = known
      ? (await this.#admin.get(`/users/${known._id}`)).body
      : await this.#find(`${whom}-${this.#count}@${this.#domain}`);
    const isThere = found?._id !== undefined;
    const isSame = JSON.stringify({ ...found, updatedAt: 0 }) === JSON.stringify({ ...known, updatedAt: 0 });
    const isOther = does === 'poison' && known?.designation === 'poison' ? isDone : !isSame;
    const hasHappened = does === 'delete' ? !isThere : isThere && isOther;
    if (hasHappened !== isDone)
      this.#faults.push(`change: ${does} was answered ${response.status} and looks otherwise`);
    if (!isDone) return;
    const record = does === 'delete' ? known : found;
    this.#people.set(whom, does === 'delete' ? { ...known, isDeleted: true } : found);
    this.#told.push(toldOf(does, record));
  }

  /**
   * Relays until nothing is left or the life ends; answers whether it ended.
   * @param patience how often it waits until another gives a hold up that it does not prolong
   */
  async relay(life: Life, holder: string, patience = Number.POSITIVE_INFINITY): Promise<boolean> {
    const { name, receiver } = this;
    let hasEnded = false;
    await withRelay(this.#app, { name, owner: holder, life, receiver, twin: this.#twin }, async (relay) => {
      try {
        await this.#toTheEnd(relay, patience);
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
        hasEnded = true;
      }
    });
    return hasEnded;
  }

  async #toTheEnd(relay: Relay, patience: number): Promise<void> {
    const { clock } = this.#app;
    let patienceLeft = patience;
    for (let steps = 0; steps < 500; steps += 1) {
      const next = await relay.step();
      if (next.kind === 'ended') return;
      if (next.kind === 'again') continue;
      if (next.untilMs === Number.POSITIVE_INFINITY) return;
      if (next.untilMs - clock.now() > 1_000) patienceLeft -= 1;
      if (patienceLeft < 0) return;
      clock.set(Math.max(clock.now(), next.untilMs));
    }
    this.#faults.push('relay: it never ends');
  }

  /** Asks for everything again after an event that is so far back. */
  async replay(back: number): Promise<void> {
    const { body } = await this.#admin.get('/events/relays');
    const { position } = body.relays.find(({ name }: Json) => name === this.name);
    const after = Math.max(this.#from, position - back);
    const since = this.receiver.now;
    const { status } = await this.#admin.post('/events/relays/replay', { relay: this.name, after });
    if (status !== 200) this.#faults.push(`replay: it was answered ${status}`);
    this.#asked.push({ after, upTo: position, since });
  }

  async requeue(): Promise<void> {
    await this.#admin.post('/events/dead-letters/requeue', { relay: this.name });
  }

  async #dead(): Promise<number[]> {
    const { body } = await this.#admin.get(`/events/dead-letters?relay=${this.name}&limit=100`);
    return body.deadLetters.map(({ sequence }: Json) => sequence);
  }

  /** Relays what is left, and answers everything that is wrong then, and once the receiver is mended and asked again. */
  async settle(): Promise<readonly string[]> {
    this.receiver.outcomes = [];
    await this.relay(new Life(), 'settling');
    const log = await this.#log(this.#from);
    const faults = [
      ...this.#faults,
      ...faultsOfLog(log, this.#told, this.#from),
      ...faultsOfArrivals(log, this.receiver),
      ...faultsOfDead(log, new Set(await this.#dead()), this.receiver),
    ];
    this.receiver.isMended = true;
    await this.requeue();
    await this.relay(new Life(), 'settling');
    const left = await this.#dead();
    if (left.length > 0) faults.push(`dead: ${left.join()} after all was mended`);
    return [...faults, ...faultsOfDead(log, new Set(), this.receiver), ...faultsOfReplays(this.#asked, this.receiver)];
  }
}

/** Behaviour of the receiver. */
export const outcomes = {
  lost: { kind: 'unavailable', arrive: 3, told: 0 },
  part: { kind: 'unavailable', arrive: 2, told: 2 },
  silent: { kind: 'unavailable', arrive: 2, told: 1 },
  down: { kind: 'unavailable', arrive: 0, told: 0 },
  refused: { kind: 'refused', arrive: 1, told: 0 },
} as const satisfies Readonly<Record<string, Outcome>>;
