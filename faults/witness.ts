import { comparePeople } from './history.ts';
import { latchkey } from './operator.ts';

let made = 0;

/**
 * Somebody who changes and reads while something is wrong with the service, and remembers what was answered: users that are
 * made and given a job, and tokens. A change is answered that it was made, or 503 with `Retry-After`, and then is not made.
 */
export class Witness {
  faults = [];
  /** How often each status was answered to a change, and to a read. */
  changes = {};
  reads = {};
  #people = [];
  #tokens = [];

  constructor({ service, token }) {
    Object.assign(this, { service, token });
  }

  #blame(fault) {
    this.faults.push(fault);
  }

  #note(counts, { status, headers, body }, expected) {
    counts[status] = (counts[status] ?? 0) + 1;
    if (expected(status)) return;
    if (status !== 503) this.#blame(`answered ${status}: ${JSON.stringify(body).slice(0, 160)}`);
    else if (headers.get('retry-after') === null) this.#blame('a 503 does not say when to try again');
  }

  async #ask(method, path, body) {
    try {
      return await this.service.call(method, path, { token: this.token, ...(body === undefined ? {} : { body }) });
    } catch (error) {
      this.#blame(`${method} ${path} got no answer: ${error.cause?.code ?? error.message}`);
      return null;
    }
  }

  /** Makes one change; answers whether it was made. */
  async change() {
    made += 1;
    const turn = made % 3;
    if (turn === 0) return await this.#makeToken(`faults token ${made}.`);
    const person = this.#people.findLast(({ status }) => status < 300);
    if (turn === 1 || !person) return await this.#makePerson(`witness-${made}@example.com`, `Witness ${made}`);
    const job = `Job ${made}`;
    const answer = await this.#ask('PATCH', `/users/${person.id}/designation`, { designation: job });
    if (answer === null) return false;
    this.#note(this.changes, answer, (status) => status < 300);
    if (answer.status < 300) person.job = job;
    return answer.status < 300;
  }

  async #makePerson(email, fullName) {
    const answer = await this.#ask('POST', '/users', { email, fullName });
    if (answer === null) return false;
    this.#note(this.changes, answer, (status) => status < 300);
    this.#people.push({ email, fullName, status: answer.status, id: answer.body._id });
    return answer.status < 300;
  }

  async #makeToken(name) {
    const answer = await this.#ask('POST', '/personal-access-tokens', { name, expiryDays: 'never' });
    if (answer === null) return false;
    this.#note(this.changes, answer, (status) => status < 300);
    this.#tokens.push({ name, status: answer.status, token: answer.body.token?.accessToken });
    return answer.status < 300;
  }

  /** Reads, and checks a good and a bad token. `mayFail`: 503 is an answer too. */
  async read({ mayFail = false } = {}) {
    const good = (status) => status === 200 || (mayFail && status === 503);
    for (const path of ['/org', '/users?page=1', '/personal-access-tokens']) {
      const answer = await this.#ask('GET', path);
      if (answer === null) continue;
      this.#note(this.reads, answer, (status) => status === 200);
      if (!good(answer.status)) this.#blame(`GET ${path} was answered ${answer.status}`);
    }
    const { status } = await this.service.call('GET', '/org', { token: 'lkpat_eyJ.not.real' });
    if (status !== 401 && !(mayFail && status === 503)) this.#blame(`a bad token was answered ${status}`);
  }

  /** Makes changes and reads between them. */
  async run(rounds, reading) {
    for (let round = 0; round < rounds; round += 1) {
      await this.change();
      if (round % 5 === 0) await this.read(reading);
    }
  }

  /** What is not as it was answered, and what no event tells of. */
  async judge() {
    const faults = [...this.faults];
    const { body: users } = await this.service.ask('GET', '/users', { token: this.token });
    const present = new Map(users.map((user) => [user.email, user]));
    for (const { email, fullName, status, job } of this.#people) {
      const user = present.get(email);
      if (status >= 300 && user) faults.push(`${email} was refused and is there`);
      if (status < 300 && user?.fullName !== fullName) faults.push(`${email} was acknowledged and is gone`);
      if (status < 300 && user && user.designation !== job) faults.push(`${email} has another job than was answered`);
    }
    for (const { name, status, token } of this.#tokens) {
      const { body } = await this.service.ask(
        'GET',
        `/personal-access-tokens/admin?search=${encodeURIComponent(name)}`,
        { token: this.token },
      );
      if (status >= 300 && body.data.length > 0) faults.push(`${name} was refused and is there`);
      if (status >= 300) continue;
      const known = await this.service.call('GET', '/org', { token });
      if (known.status !== 200) faults.push(`${name} was acknowledged and is answered ${known.status}`);
    }
    return [...faults, ...comparePeople(users, await this.service.events())];
  }
}

const total = (counts, status) => counts[status] ?? 0;

/** What was answered, as a cell of the table. */
export function told({ changes, reads }) {
  const kept = Object.entries(changes).reduce((sum, [status, count]) => (status < 300 ? sum + count : sum), 0);
  return `${kept} changes made, ${total(changes, 503)} refused, ${total(reads, 200)} reads`;
}

/** What is wrong with the store of a service that has stopped, by the command that proves its audit log. */
export function auditFaults(entry, dataDir, env = {}) {
  try {
    latchkey(entry, ['audit', 'verify'], { DATA_DIR: dataDir, ...env });
    return [];
  } catch (error) {
    return [error.message];
  }
}
