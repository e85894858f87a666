import type { Answer, Json } from '../harness/api-client.ts';
import { messageOf } from '../harness/command-line.ts';
import { compareUsers } from './history.ts';
import { latchkey } from './operator.ts';
import type { Service } from './service.ts';

/** By status. */
type Counts = Record<number, number>;
interface Reading {
  /** 503 is an answer too. */
  readonly mayFail?: boolean;
}

let made = 0;

/**
 * A client that changes and reads while something is wrong with the service, and remembers what was answered: users that are
 * made and given a job, and tokens. A change is answered that it was made, or 503 with `Retry-After`, and then is not made.
 */
export class Witness {
  readonly service: Service;
  readonly token: string;
  readonly faults: string[] = [];
  /** How often each status was answered to a change, and to a read. */
  readonly changes: Counts = {};
  readonly reads: Counts = {};
  readonly #people: User[] = [];
  readonly #tokens: { readonly name: string; readonly status: number; readonly token: string }[] = [];

  constructor({ service, token }: { service: Service; token: string }) {
    this.service = service;
    this.token = token;
  }

  /** How many changes were answered 503. */
  get refused(): number {
    return this.changes[503] ?? 0;
  }

  #blame(fault: string): void {
    this.faults.push(fault);
  }

  #note(counts: Counts, { status, headers, body }: Answer, isExpected: (status: number) => boolean): void {
    counts[status] = (counts[status] ?? 0) + 1;
    if (isExpected(status)) return;
    if (status !== 503) this.#blame(`answered ${status}: ${JSON.stringify(body).slice(0, 160)}`);
    else if (headers.get('retry-after') === null) this.#blame('a 503 does not say when to try again');
  }

  async #ask(method: string, path: string, body?: unknown): Promise<Answer | null> {
    try {
      return await this.service.call(method, path, { token: this.token, body });
    } catch (error) {
      this.#blame(`${method} ${path} got no answer: ${messageOf(error)}`);
      return null;
    }
  }

  /** Makes one change; answers whether it was made. */
  async change(): Promise<boolean> {
    made += 1;
    const turn = made % 3;
    if (turn === 0) return this.#makeToken(`faults token ${made}.`);
    const user = this.#people.findLast(({ status }) => status < 300);
    if (turn === 1 || !user) return this.#makePerson(`witness-${made}@example.com`, `Witness ${made}`);
    const job = `Job ${made}`;
    const response = await this.#ask('PATCH', `/users/${user.id}/designation`, { designation: job });
    if (response === null) return false;
    this.#note(this.changes, response, (status) => status < 300);
    if (response.status < 300) user.job = job;
    return response.status < 300;
  }

  async #makePerson(email: string, fullName: string): Promise<boolean> {
    const response = await this.#ask('POST', '/users', { email, fullName });
    if (response === null) return false;
    this.#note(this.changes, response, (status) => status < 300);
    this.#people.push({ email, fullName, status: response.status, id: response.body._id });
    return response.status < 300;
  }

  async #makeToken(name: string): Promise<boolean> {
    const response = await this.#ask('POST', '/personal-access-tokens', { name, expiryDays: 'never' });
    if (response === null) return false;
    this.#note(this.changes, response, (status) => status < 300);
    this.#tokens.push({ name, status: response.status, token: response.body.token?.accessToken });
    return response.status < 300;
  }

  /** Reads, and checks a good and a bad token. */
  async read({ mayFail = false }: Reading = {}): Promise<void> {
    const good = (status: number) => status === 200 || (mayFail && status === 503);
    for (const path of ['/org', '/users?page=1', '/personal-access-tokens']) {
      const response = await this.#ask('GET', path);
      if (response === null) continue;
      this.#note(this.reads, response, (status) => status === 200);
      if (!good(response.status)) this.#blame(`GET ${path} was answered ${response.status}`);
    }
    const { status } = await this.service.call('GET', '/org', { token: 'lkpat_eyJ.not.real' });
    if (status !== 401 && !(mayFail && status === 503)) this.#blame(`a bad token was answered ${status}`);
  }

  /** Makes changes and reads between them. */
  async run(rounds: number, reading?: Reading): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      await this.change();
      if (round % 5 === 0) await this.read(reading);
    }
  }

  /** What is not as it was answered, and what no event tells of. */
  async check(): Promise<readonly string[]> {
    const faults = [...this.faults];
    const { body: users } = await this.service.ask('GET', '/users', { token: this.token });
    const present = new Map<string, Json>(users.map((user: Json) => [user.email, user]));
    faults.push(...this.#people.flatMap((user) => personFaults(user, present.get(user.email))));
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
    return [...faults, ...compareUsers(users, await this.service.events())];
  }
}

interface User {
  readonly email: string;
  readonly fullName: string;
  readonly status: number;
  readonly id: string;
  job?: string;
}

/** What is wrong with a user, if there is one, against what was answered. */
function personFaults({ email, fullName, status, job }: User, user: Json): readonly string[] {
  if (status >= 300) return user ? [`${email} was refused and is there`] : [];
  if (user?.fullName !== fullName) return [`${email} was acknowledged and is gone`];
  return user.designation === job ? [] : [`${email} has another job than was answered`];
}

const total = (counts: Counts, status: number) => counts[status] ?? 0;

/** What was answered, as a cell of the table. */
export function told({ changes, reads }: Witness): string {
  const kept = Object.entries(changes).reduce((sum, [status, count]) => (Number(status) < 300 ? sum + count : sum), 0);
  return `${kept} changes made, ${total(changes, 503)} refused, ${total(reads, 200)} reads`;
}

/** What is wrong with the store of a service that has stopped, by the command that proves its audit log. */
export function auditFaults(
  entry: string,
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
): readonly string[] {
  try {
    latchkey(entry, ['audit', 'verify'], { DATA_DIR: dataDir, ...env });
    return [];
  } catch (error) {
    return [messageOf(error)];
  }
}
