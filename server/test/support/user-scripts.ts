import fc from 'fast-check';
import type { Client, TestResponse } from './test-app.ts';

/** Number of users in a script; there is one more address than users. */
export const peopleCount = 3;

const fields = ['firstName', 'lastName', 'fullname', 'designation'] as const;

/** An act of an administrator on a user, or of a user on themselves. */
type Command =
  | { readonly does: 'delete' | 'restore'; readonly whom: number }
  | { readonly does: (typeof fields)[number]; readonly whom: number; readonly to: string }
  | { readonly does: 'email' | 'PUT'; readonly whom: number; readonly to: number; readonly loud: boolean }
  | { readonly does: 'create'; readonly to: number }
  | { readonly does: 'mint' | 'own designation' };

/** Acts, and the order of moves when more than one lane could move. */
export interface Script {
  /** One list for each of two administrators, and one for user number 0. */
  readonly lanes: readonly (readonly Command[])[];
  readonly picks: readonly number[];
}

const whom = fc.nat({ max: peopleCount - 1 });
const to = fc.nat({ max: peopleCount });
const administration: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ does: fc.constantFrom('delete' as const, 'restore' as const), whom }) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constantFrom('email' as const, 'PUT' as const), whom, to, loud: fc.boolean() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constantFrom(...fields), whom, to: fc.constantFrom('Ada', 'Grace', 'Ada Grace') }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('create' as const), to }) },
);
const administrations = fc.array(administration, { minLength: 1, maxLength: 5 });
const own: fc.Arbitrary<Command> = fc.record({ does: fc.constantFrom('mint' as const, 'own designation' as const) });

/** Any script. */
export const scripts: fc.Arbitrary<Script> = fc.record({
  lanes: fc.tuple(administrations, administrations, fc.array(own, { maxLength: 3 })),
  picks: fc.array(fc.nat({ max: 2 }), { minLength: 16, maxLength: 16 }),
});

interface Cast {
  readonly ids: readonly string[];
  readonly domain: string;
}

/** Sends the request that a command is. */
export function send(command: Command, client: Client, { ids, domain }: Cast): Promise<TestResponse> {
  const path = 'whom' in command ? `/users/${ids[command.whom]}` : '';
  const email = 'to' in command ? `${command.to}@${domain}` : '';
  const spelled = 'loud' in command && command.loud ? ` ${email.toUpperCase()}` : email;
  switch (command.does) {
    case 'mint':
      return client.post('/personal-access-tokens', { name: 'late', expiryDays: 'never' });
    case 'own designation':
      return client.patch(`/users/${ids[0]}/designation`, { designation: 'Own' });
    case 'create':
      return client.post('/users', { fullName: 'New', email });
    case 'delete':
      return client.delete(path);
    case 'restore':
      return client.post(`${path}/restore`);
    case 'email':
      return client.patch(`${path}/email`, { email: spelled });
    case 'PUT':
      return client.put(path, { email: spelled, middleName: 'Put' });
    case 'fullname':
      return client.patch(`${path}/fullname`, { fullName: command.to });
    default:
      return client.patch(`${path}/${command.does}`, { [command.does]: command.to });
  }
}

interface ExpectedUser {
  address: number;
  isDeleted: boolean;
  wasDeleted: boolean;
}

/** Expected users, as the rules have it: each response follows from them. */
export class Expected {
  readonly users: readonly ExpectedUser[] = Array.from({ length: peopleCount }, (_, address) => {
    return { address, isDeleted: false, wasDeleted: false };
  });
  readonly #created = new Set<number>();

  #isTaken(address: number): boolean {
    return this.#created.has(address) || this.users.some((user) => user.address === address);
  }

  /** The status that a command gets now; what it does is done. */
  status(command: Command): number {
    if ('whom' in command) {
      const user = this.users[command.whom];
      if (!user) throw new Error('nobody has this number');
      return this.#statusOf(user, command);
    }
    if (command.does !== 'create') {
      const done = command.does === 'mint' ? 201 : 200;
      return this.users[0]?.wasDeleted ? 401 : done;
    }
    if (this.#isTaken(command.to)) return 409;
    this.#created.add(command.to);
    return 201;
  }

  #statusOf(user: ExpectedUser, command: Command): number {
    if (command.does === 'restore') {
      if (!user.isDeleted) return 409;
      user.isDeleted = false;
      return 200;
    }
    if (user.isDeleted) return 404;
    if (command.does === 'delete') {
      user.isDeleted = true;
      user.wasDeleted = true;
    }
    if (command.does === 'email' || command.does === 'PUT') {
      if (command.to !== user.address && this.#isTaken(command.to)) return 409;
      user.address = command.to;
    }
    return 200;
  }
}
