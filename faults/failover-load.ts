import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, CallOptions } from '../harness/api-client.ts';
import { messageOf } from '../harness/command-line.ts';
import { Actor, type Called } from './actors.ts';
import { type History, nowMs } from './history.ts';
import type { Service } from './service.ts';

const actorsEach = 2;
const pauseMs = 20;
const isGood = (status: number) => status >= 200 && status < 300;
let made = 0;

/** A call that was made, its times by the monotonic clock; status 0 for no answer. */
interface SeenCall {
  readonly node: string;
  readonly isRead: boolean;
  readonly status: number;
  readonly sentMs: number;
  readonly endMs: number;
  readonly tookMs: number;
}

/** A node as its clients see it: every call is remembered, with what it took and how it was answered. */
class Seen implements Called {
  readonly service: Service;
  readonly #load: Load;

  constructor(service: Service, load: Load) {
    this.service = service;
    this.#load = load;
  }

  /** Calls; throws without an answer, which there always has to be. */
  async call(method: string, path: string, options?: CallOptions): Promise<Answer> {
    const { service } = this;
    const load = this.#load;
    const sentMs = performance.now();
    const note = (status: number) => {
      const endMs = performance.now();
      load.calls.push({ node: service.name, isRead: method === 'GET', status, sentMs, endMs, tookMs: endMs - sentMs });
    };
    try {
      const response = await service.call(method, path, options);
      note(response.status);
      if (response.status === 503 && response.headers.get('retry-after') === null)
        load.blame('a 503 does not say when to try again');
      if (response.status === 429 || (response.status >= 500 && response.status !== 503))
        load.blame(`${method} ${path} was answered ${response.status}: ${JSON.stringify(response.body).slice(0, 200)}`);
      return response;
    } catch (error) {
      note(0);
      load.blame(`${method} ${path} got no answer on node ${service.name}: ${messageOf(error)}`);
      throw error;
    }
  }

  async ask(method: string, path: string, options?: CallOptions): Promise<Answer> {
    const response = await this.call(method, path, options);
    if (isGood(response.status)) return response;
    throw new Error(`${method} ${path} was answered ${response.status}`);
  }
}

/** Looks up what got no answer; it stays open where that cannot be seen yet. */
async function settle(actor: Actor): Promise<void> {
  const { open } = actor;
  try {
    await actor.settle();
  } catch (error) {
    actor.open = open;
    throw error;
  }
}

/**
 * Mixed load on some nodes with one store: changes of which each is told of by an event, groups and tokens, tokens that are
 * revoked, and checks of all of them, on every node.
 */
export class Load {
  readonly nodes: readonly Seen[];
  readonly actors: readonly Actor<Seen>[];
  readonly calls: SeenCall[] = [];
  readonly faults: string[] = [];
  /** While something is wrong with the store: what got no good answer is looked up afterwards. */
  isTrouble = false;
  readonly #history: History;
  readonly #token: string;
  readonly #revoked: string[] = [];
  #isOver = false;

  constructor({ nodes, history, token }: { nodes: readonly Service[]; history: History; token: string }) {
    this.nodes = nodes.map((service) => new Seen(service, this));
    this.#history = history;
    this.#token = token;
    this.actors = this.nodes.flatMap((service, node) =>
      Array.from(
        { length: actorsEach },
        (_, number) => new Actor({ service, history, token, mayRename: node + number === 0, mayFail: true }),
      ),
    );
  }

  blame(fault: string): void {
    if (this.faults.length < 100) this.faults.push(fault);
  }

  begin(): void {
    this.#working = [
      ...this.actors.map((actor) => this.#repeat(() => this.#act(actor))),
      ...this.nodes.flatMap((node) => [
        this.#repeat(() => this.#check(node)),
        this.#repeat(() => this.#check(node)),
        this.#repeat(() => this.#makeGroup(node)),
        this.#repeat(() => this.#revoke(node)),
        this.#repeat(() => this.#checkRevoked(node)),
      ]),
    ];
  }

  #working: readonly Promise<void>[] = [];

  /** Nothing more is asked. */
  stop(): void {
    this.#isOver = true;
  }

  /** Ends it, and looks up what got no answer. */
  async end(): Promise<void> {
    this.isTrouble = false;
    this.stop();
    await Promise.all(this.#working);
    // What was acknowledged and is gone is a fault.
    for (const actor of this.actors) await settle(actor).catch((error) => this.blame(messageOf(error)));
  }

  async #repeat(work: () => Promise<unknown>): Promise<void> {
    while (!this.#isOver) {
      // What is wrong with an answer was noted where it came.
      await work().catch(() => sleep(pauseMs));
      await sleep(pauseMs);
    }
  }

  async #act(actor: Actor<Seen>): Promise<void> {
    if (actor.open === null) await actor.act();
    else if (!this.isTrouble && (await this.#makeGroup(actor.service))) await settle(actor);
  }

  /** Whatever was begun before it, on any node, has ended when it is answered. Answers whether it was made. */
  async #makeGroup(node: Seen): Promise<boolean> {
    made += 1;
    const name = `Failover ${made} ${nowMs()}`;
    const { status } = await node.call('POST', '/userGroups', { token: this.#token, body: { name, type: 'custom' } });
    if (isGood(status)) this.#history.groups.push({ name });
    else if (status !== 503) this.blame(`a group was answered ${status}`);
    return isGood(status);
  }

  /** A good token is answered well, or not at all. */
  async #check(node: Seen, token = this.#token): Promise<void> {
    const { status } = await node.call('GET', '/org', { token });
    if (status !== 200 && status !== 503) this.blame(`a good token was answered ${status}`);
  }

  async #revoke(node: Seen): Promise<void> {
    made += 1;
    const token = this.#token;
    const body = { name: `failover ${made}`, expiryDays: 'never', scopes: ['org:read'] };
    const response = await node.call('POST', '/personal-access-tokens', { token, body });
    if (!isGood(response.status)) return;
    const { id, accessToken } = response.body.token;
    await Promise.all(this.nodes.map((one) => this.#check(one, accessToken)));
    const { status } = await node.call('DELETE', `/personal-access-tokens/${id}`, { token });
    if (status === 503) return;
    if (!isGood(status)) this.blame(`the revocation of a token was answered ${status}`);
    this.#revoked.push(accessToken);
    await Promise.all(this.nodes.map((one) => this.#expectRevoked(one, accessToken)));
  }

  async #checkRevoked(node: Seen): Promise<void> {
    const token = this.#revoked[Math.floor(Math.random() * this.#revoked.length)];
    if (token !== undefined) await this.#expectRevoked(node, token);
  }

  async #expectRevoked(node: Seen, token: string): Promise<void> {
    const { status } = await node.call('GET', '/org', { token });
    if (status !== 401 && status !== 503) this.blame(`a revoked token was answered ${status}`);
  }

  /** Every token whose revocation was acknowledged, on every node. Answers how many there are. */
  async judgeRevoked(): Promise<number> {
    for (const node of this.nodes) {
      for (const token of this.#revoked) {
        const { status } = await node.call('GET', '/org', { token });
        if (status !== 401) this.blame(`a token whose revocation was acknowledged is answered ${status}`);
      }
    }
    return this.#revoked.length;
  }

  /** Milliseconds from a moment until a node gave a good answer to a read, or to a change; Infinity where it never did. */
  firstGoodMs(sinceMs: number, { node, isRead }: { node: string; isRead: boolean }): number {
    const good = this.calls.filter(
      (call) => call.node === node && call.isRead === isRead && isGood(call.status) && call.endMs > sinceMs,
    );
    return Math.min(...good.map(({ endMs }) => endMs - sinceMs), Number.POSITIVE_INFINITY);
  }
}
