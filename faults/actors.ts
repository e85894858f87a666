import { randomInt } from 'node:crypto';
import { nowMs } from './history.ts';

const choose = (list) => list[randomInt(list.length)];
let made = 0;

const payloadOf = ({ orgId, _id, email, fullName, firstName, middleName, lastName, designation }) =>
  JSON.parse(JSON.stringify({ orgId, userId: _id, email, fullName, firstName, middleName, lastName, designation }));

function eventOf(does, { orgId, _id: userId, email, fullName, ...record }) {
  if (does === 'delete') return { eventType: 'userDeleted', payload: { orgId, userId, email } };
  if (does === 'create' || does === 'restore') {
    return { eventType: 'userAdded', payload: { orgId, userId, email, fullName, syncAction: 'immediate' } };
  }
  return { eventType: 'userUpdated', payload: payloadOf({ orgId, _id: userId, email, fullName, ...record }) };
}

/**
 * Somebody who changes things, one after another: users that nobody else changes, now and then the organization's name, and
 * groups and tokens, which no event tells of. Everything goes into the history; what got no answer is looked up by `settle`.
 */
export class Actor {
  users = [];
  /** What got no answer. */
  open = null;

  /** `mayFail`: 503 is as good as no answer. */
  constructor({ service, history, token, mayRename, mayFail = false }) {
    Object.assign(this, { service, history, token, mayRename, mayFail });
  }

  #next() {
    made += 1;
    const number = made;
    const fullName = `Person ${number}`;
    const dice = randomInt(100);
    if (this.mayRename && dice < 8) return { does: 'organization', body: { registeredName: `Engines ${number}` } };
    if (dice < 14) return { does: 'group', body: { name: `Group ${number} ${nowMs()}`, type: 'custom' } };
    if (dice < 20)
      return { does: 'token', body: { name: `token ${number}`, expiryDays: 'never', scopes: ['org:read'] } };
    const user = this.users.length < 3 || dice < 45 ? null : choose(this.users);
    if (!user)
      return { does: 'create', body: { fullName, email: `person-${number}-${Math.floor(nowMs())}@example.com` } };
    if (user.isDeleted) return { does: 'restore', user };
    if (dice < 55) return { does: 'delete', user };
    if (dice < 80) return { does: 'rename', user, body: { email: user.email, fullName, designation: `Job ${number}` } };
    return { does: 'designation', user, body: { designation: `Job ${number}` } };
  }

  #send({ does, user, body }) {
    const { service, token } = this;
    const ask = (method, path) => service.call(method, path, { token, ...(body === undefined ? {} : { body }) });
    switch (does) {
      case 'organization':
        return ask('PATCH', '/org');
      case 'group':
        return ask('POST', '/userGroups');
      case 'token':
        return ask('POST', '/personal-access-tokens');
      case 'create':
        return ask('POST', '/users');
      case 'restore':
        return ask('POST', `/users/${user._id}/restore`);
      case 'delete':
        return ask('DELETE', `/users/${user._id}`);
      case 'rename':
        return ask('PUT', `/users/${user._id}`);
      default:
        return ask('PATCH', `/users/${user._id}/designation`);
    }
  }

  /** Makes one change; answers how long it took in milliseconds, or null where no answer came. */
  async act() {
    const change = this.#next();
    const sentMs = nowMs();
    this.open = { ...change, sentMs };
    let answer;
    try {
      answer = await this.#send(change);
    } catch {
      return null;
    }
    if (this.mayFail && answer.status === 503) return null;
    this.open = null;
    const answeredMs = nowMs();
    if (answer.status >= 300) {
      this.history.complain(
        `${change.does} was answered ${answer.status}: ${JSON.stringify(answer.body).slice(0, 200)}`,
      );
    } else {
      this.#note(change, answer.body, { sentMs, answeredMs });
    }
    return answeredMs - sentMs;
  }

  #note({ does, user, body }, answer, times) {
    const { history } = this;
    if (does === 'group') return history.groups.push({ name: body.name, ...times });
    if (does === 'token') return history.tokens.push({ token: answer.token.accessToken, ...times });
    if (does === 'organization') {
      const payload = { orgId: answer.data?._id ?? answer._id, registeredName: body.registeredName };
      return history.add({ key: 'organization', event: { eventType: 'orgUpdated', payload }, ...times });
    }
    const record = does === 'delete' ? user : answer;
    history.add({ key: record._id, event: eventOf(does, record), ...times });
    if (does === 'create') return this.users.push(record);
    return Object.assign(user, record, { isDeleted: does === 'delete' });
  }

  /** Looks what became of a change that got no answer: then it was made as a whole, or not at all. */
  async settle() {
    const { open, service, token } = this;
    this.open = null;
    if (!open || open.does === 'group' || open.does === 'token') return;
    const times = { sentMs: open.sentMs, answeredMs: Infinity };
    if (open.does === 'organization') {
      const { body } = await service.ask('GET', '/org', { token });
      if (body.registeredName === open.body.registeredName) this.#note(open, body, times);
      return;
    }
    const found = await this.#find(open);
    if (found !== null) this.#note(open, found, times);
  }

  async #find({ does, user, body }) {
    const { service, token } = this;
    if (does === 'create') {
      const { body: page } = await service.ask('GET', `/users?limit=5&search=${encodeURIComponent(body.email)}`, {
        token,
      });
      return page.users.find(({ email }) => email === body.email) ?? null;
    }
    const { status, body: found } = await service.call('GET', `/users/${user._id}`, { token });
    if (does === 'delete') return status === 404 ? user : null;
    if (does === 'restore') return status === 200 ? found : null;
    if (status !== 200) throw new Error(`a user is gone whom nobody deleted: ${user.email}`);
    const isDone = found.designation === body.designation;
    if (isDone && does === 'rename' && found.fullName !== body.fullName) this.history.complain('a user is half changed');
    return isDone ? found : null;
  }

  /** What is not as it was answered. */
  faults(users) {
    const present = new Map(users.map((user) => [user._id, user]));
    return this.users.flatMap((user) => {
      const found = present.get(user._id);
      if (user.isDeleted) return found ? [`${user.email} is there again`] : [];
      if (!found) return [`${user.email} is gone`];
      const isSame = ['email', 'fullName', 'designation'].every((field) => found[field] === user[field]);
      return isSame ? [] : [`${user.email} is not as it was answered`];
    });
  }
}

/** What was answered and is not there: users, tokens and groups, the last two once each. */
export async function lostAnswers({ service, history, token, actors }) {
  const { body: users } = await service.ask('GET', '/users', { token });
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
