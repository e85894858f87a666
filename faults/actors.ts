import { randomInt } from 'node:crypto';
import type { Answer, CallOptions, Json } from '../harness/api-client.ts';
import { type Entry, type History, nowMs, type Times, type UserRecord } from './history.ts';

/** A service that can be called. */
export interface Called {
  /** Rejects without an answer. */
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  /** The same, and throws unless the status is 2xx. */
  ask(method: string, path: string, options?: CallOptions): Promise<Answer>;
}

type Body = Readonly<Record<string, string | readonly string[]>>;
type User = UserRecord & { readonly isDeleted?: boolean };

/** What is asked for next. */
type Change =
  | { readonly does: 'organization' | 'group' | 'token' | 'create'; readonly body: Body }
  | { readonly does: 'restore' | 'delete'; readonly user: User; readonly body?: undefined }
  | { readonly does: 'rename' | 'designation'; readonly user: User; readonly body: Body };

let made = 0;

function payloadOf({ orgId, _id, email, fullName, firstName, middleName, lastName, designation }: UserRecord): Json {
  const payload = { orgId, userId: _id, email, fullName, firstName, middleName, lastName, designation };
  return JSON.parse(JSON.stringify(payload));
}

function eventOf(does: Change['does'], user: UserRecord): Entry['event'] {
  const { orgId, _id: userId, email, fullName } = user;
  if (does === 'delete') return { eventType: 'userDeleted', payload: { orgId, userId, email } };
  if (does === 'create' || does === 'restore') {
    return { eventType: 'userAdded', payload: { orgId, userId, email, fullName, syncAction: 'immediate' } };
  }
  return { eventType: 'userUpdated', payload: payloadOf(user) };
}

interface ActorOptions<S extends Called> {
  readonly service: S;
  readonly history: History;
  readonly token: string;
  readonly mayRename: boolean;
  /** 503 is as good as no answer. */
  readonly mayFail?: boolean;
}

/**
 * A client that changes things, one after another: users that no one else changes, now and then the organization's name, and
 * groups and tokens, which no event tells of. Everything goes into the history; what got no answer is looked up by `settle`.
 */
export class Actor<S extends Called = Called> {
  readonly service: S;
  /** What got no answer. */
  open: (Change & { readonly sentMs: number }) | null = null;
  readonly #options: ActorOptions<S>;
  readonly #users = new Map<string, User>();

  constructor(options: ActorOptions<S>) {
    this.service = options.service;
    this.#options = options;
  }

  #next(): Change {
    made += 1;
    const number = made;
    const { mayRename } = this.#options;
    const fullName = `Person ${number}`;
    const dice = randomInt(100);
    if (mayRename && dice < 8) return { does: 'organization', body: { registeredName: `Engines ${number}` } };
    if (dice < 14) return { does: 'group', body: { name: `Group ${number} ${nowMs()}`, type: 'custom' } };
    if (dice < 20)
      return { does: 'token', body: { name: `token ${number}`, expiryDays: 'never', scopes: ['org:read'] } };
    const users = [...this.#users.values()];
    const user = users.length < 3 || dice < 45 ? undefined : users[randomInt(users.length)];
    if (!user)
      return { does: 'create', body: { fullName, email: `person-${number}-${Math.floor(nowMs())}@example.com` } };
    if (user.isDeleted) return { does: 'restore', user };
    if (dice < 55) return { does: 'delete', user };
    if (dice < 80) return { does: 'rename', user, body: { email: user.email, fullName, designation: `Job ${number}` } };
    return { does: 'designation', user, body: { designation: `Job ${number}` } };
  }

  #send(change: Change): Promise<Answer> {
    const { token } = this.#options;
    const ask = (method: string, path: string) => this.service.call(method, path, { token, body: change.body });
    switch (change.does) {
      case 'organization':
        return ask('PATCH', '/org');
      case 'group':
        return ask('POST', '/userGroups');
      case 'token':
        return ask('POST', '/personal-access-tokens');
      case 'create':
        return ask('POST', '/users');
      case 'restore':
        return ask('POST', `/users/${change.user._id}/restore`);
      case 'delete':
        return ask('DELETE', `/users/${change.user._id}`);
      case 'rename':
        return ask('PUT', `/users/${change.user._id}`);
      case 'designation':
        return ask('PATCH', `/users/${change.user._id}/designation`);
    }
  }

  /** Makes one change; returns how long it took in milliseconds, or null where no answer came. */
  async act(): Promise<number | null> {
    const change = this.#next();
    const sentMs = nowMs();
    this.open = { ...change, sentMs };
    let response: Answer;
    try {
      response = await this.#send(change);
    } catch {
      return null;
    }
    if (this.#options.mayFail && response.status === 503) return null;
    this.open = null;
    const answeredMs = nowMs();
    if (response.status >= 300) {
      this.#options.history.complain(
        `${change.does} was answered ${response.status}: ${JSON.stringify(response.body).slice(0, 200)}`,
      );
    } else {
      this.#note(change, response.body, { sentMs, answeredMs });
    }
    return answeredMs - sentMs;
  }

  #note(change: Change, response: Json, times: Times): void {
    const { history } = this.#options;
    const { does, body } = change;
    if (does === 'group') {
      history.groups.push({ name: String(body['name']) });
    } else if (does === 'token') {
      history.tokens.push({ token: response.token.accessToken, ...times });
    } else if (does === 'organization') {
      const payload = { orgId: response.data?._id ?? response._id, registeredName: body['registeredName'] };
      history.add({ key: 'organization', event: { eventType: 'orgUpdated', payload }, ...times });
    } else {
      const record: User = does === 'delete' ? change.user : response;
      history.add({ key: record._id, event: eventOf(does, record), ...times });
      const known = this.#users.get(record._id);
      this.#users.set(record._id, { ...known, ...record, isDeleted: does === 'delete' });
    }
  }

  /** Looks up what became of a change that got no answer: it was made as a whole, or not at all. */
  async settle(): Promise<void> {
    const { open } = this;
    const { token } = this.#options;
    this.open = null;
    if (!open || open.does === 'group' || open.does === 'token') return;
    const times = { sentMs: open.sentMs, answeredMs: Number.POSITIVE_INFINITY };
    if (open.does === 'organization') {
      const { body } = await this.service.ask('GET', '/org', { token });
      if (body.registeredName === open.body['registeredName']) this.#note(open, body, times);
      return;
    }
    const found = await this.#find(open);
    if (found !== null) this.#note(open, found, times);
  }

  async #find(change: Change): Promise<UserRecord | null> {
    const { history, token } = this.#options;
    if (!('user' in change)) {
      const wanted = String(change.body['email']);
      const { body } = await this.service.ask('GET', `/users?limit=5&search=${encodeURIComponent(wanted)}`, { token });
      return body.users.find(({ email }: UserRecord) => email === wanted) ?? null;
    }
    const { does, user, body } = change;
    const { status, body: found } = await this.service.call('GET', `/users/${user._id}`, { token });
    if (does === 'delete') return status === 404 ? user : null;
    if (does === 'restore') return status === 200 ? found : null;
    if (status !== 200) throw new Error(`a user is gone that no one deleted: ${user.email}`);
    if (body === undefined) return null;
    const isDone = found.designation === body['designation'];
    if (isDone && does === 'rename' && found.fullName !== body['fullName']) history.complain('a user is half changed');
    return isDone ? found : null;
  }

  /** What is not as it was answered. */
  faults(users: readonly UserRecord[]): readonly string[] {
    const present = new Map(users.map((user) => [user._id, user]));
    return [...this.#users.values()].flatMap((user) => {
      const found = present.get(user._id);
      if (user.isDeleted) return found ? [`${user.email} is there again`] : [];
      if (!found) return [`${user.email} is gone`];
      const isSame = (['email', 'fullName', 'designation'] as const).every((field) => found[field] === user[field]);
      return isSame ? [] : [`${user.email} is not as it was answered`];
    });
  }
}

interface Looked {
  readonly service: Called;
  readonly history: History;
  readonly token: string;
  readonly actors: readonly Actor[];
}

/** What was answered and is not there: users, tokens and groups, the last two once each; and the users that are. */
export async function lostAnswers({ service, history, token, actors }: Looked) {
  const users: readonly UserRecord[] = (await service.ask('GET', '/users', { token })).body;
  const faults = actors.flatMap((actor) => actor.faults(users));
  for (const { token: made } of history.tokens.splice(0)) {
    const { status } = await service.call('GET', '/org', { token: made });
    if (status !== 200) faults.push(`a token that was answered is answered ${status}`);
  }
  for (const { name } of history.groups.splice(0)) {
    const { body } = await service.ask('GET', `/userGroups?search=${encodeURIComponent(name)}`, { token });
    if (body.groups.length !== 1) faults.push(`${name} is gone`);
  }
  return { faults, users };
}
