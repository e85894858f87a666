import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setPassword } from '../../src/features/passwords/public.ts';
import type { AllServices } from '../../src/services.ts';
import { type Gate, holdNext } from '../support/gates.ts';
import { onePixel } from '../support/made-pictures.ts';
import { secondConnection } from '../support/second-connection.ts';
import { beginSignIn } from '../support/sign-in.ts';
import { type Client, type Json, password, TestApp, type TestResponse } from '../support/test-app.ts';

const picture = new Uint8Array(onePixel());

/** A user with every kind of credential. */
interface User {
  readonly email: string;
  readonly id: string;
  readonly session: Client;
  readonly token: Client;
  readonly refreshToken: string;
}

/** An action by which a user creates or changes something of their own. */
interface Doing {
  readonly name: string;
  readonly by: readonly ('session' | 'token')[];
  readonly done: number;
  do(caller: Client, user: User): Promise<TestResponse>;
}

describe('N7: a user is deleted while that user does something', () => {
  let app: TestApp;
  let admin: Client;
  let passwordHash: string;
  let count = 0;

  beforeAll(async () => {
    app = await TestApp.start();
    passwordHash = await app.services.passwords.hash(password);
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  async function someUser(): Promise<User> {
    count += 1;
    const email = `leaving-${count}@example.com`;
    const { body: user } = await admin.post('/users', { fullName: 'Leaving', email });
    const { db, clock } = app.services;
    await db.transaction((tx) => setPassword(tx, { userId: user._id, passwordHash, nowMs: clock.now() }));
    const { body } = await app.signInTokens(email);
    const session = app.with(body.accessToken);
    await session.upload('/users/dp', picture);
    return { email, id: user._id, session, token: await session.token(), refreshToken: body.refreshToken };
  }

  /** Returns everything that is stored of a user, except the last use of tokens. */
  function theirs(id: string): Json {
    const store = secondConnection(app);
    const all = (sql: string, ...args: unknown[]) => store.prepare(sql).all(...args);
    const rows = {
      user: all('SELECT * FROM users WHERE id = ?', id),
      groups: all('SELECT * FROM group_members WHERE user_id = ?', id),
      tokens: all('SELECT id, revoked_at FROM personal_access_tokens WHERE user_id = ?', id),
      sessions: all('SELECT * FROM sessions WHERE user_id = ?', id),
      sessionTokens: all(
        'SELECT t.* FROM session_tokens t JOIN sessions s ON s.id = t.session_id WHERE s.user_id = ?',
        id,
      ),
      pictures: all('SELECT * FROM pictures WHERE owner_id = ?', id),
      passwords: all('SELECT * FROM password_credentials WHERE user_id = ?', id),
      events: all('SELECT * FROM outbox WHERE payload LIKE ?', `%${id}%`),
      audit: all('SELECT * FROM audit_log WHERE ? IN (subject_id, actor_user_id)', id),
    };
    store.close();
    return rows;
  }

  const signIn = async ({ email }: User) => {
    const headers = { 'x-session-token': await beginSignIn(app, email) };
    return app.anonymous.post(
      '/userAccount/authenticate',
      { method: 'password', credentials: { password }, email },
      { headers },
    );
  };
  const both = ['session', 'token'] as const;
  const once = ['session'] as const;
  const doings: readonly Doing[] = [
    { name: 'mints', by: both, done: 201, do: (caller) => caller.post('/personal-access-tokens', { name: 'late' }) },
    { name: 'uploads', by: both, done: 201, do: (caller) => caller.upload('/users/dp', picture) },
    { name: 'removes the picture', by: both, done: 200, do: (caller) => caller.delete('/users/dp') },
    {
      name: 'edits a field',
      by: both,
      done: 200,
      do: (caller, { id }) => caller.patch(`/users/${id}/designation`, { designation: 'Late' }),
    },
    {
      name: 'edits everything',
      by: both,
      done: 200,
      do: (caller, { id, email }) => caller.put(`/users/${id}`, { email: `late-${email}`, hasLoggedIn: true }),
    },
    {
      name: 'refreshes',
      by: once,
      done: 200,
      do: (_, { refreshToken }) => app.with(refreshToken).post('/userAccount/refresh/token'),
    },
    { name: 'signs in', by: once, done: 200, do: (_, user) => signIn(user) },
  ];
  const cases = doings.flatMap((doing) => doing.by.map((kind) => [`${doing.name}, by ${kind}`, kind, doing] as const));

  /** Places where the request is held: ahead of its transaction, or of slow work before it. */
  const gates: readonly (readonly [string, (name: string) => boolean, () => Gate])[] = [
    ['ahead of the transaction', () => true, () => holdNext(app.services.db, 'transaction')],
    [
      'ahead of the check of the password',
      (name) => name === 'signs in',
      () => holdNext(app.services.passwords, 'matches'),
    ],
    [
      'ahead of the work on the picture',
      (name) => name === 'uploads',
      () => holdNext(app.services.pictures, 'compress'),
    ],
    [
      'ahead of signing',
      (name) => ['mints', 'refreshes', 'signs in'].includes(name),
      () => holdNext(app.services.keys, 'sign'),
    ],
  ];

  /** Holds a user's action, acts meanwhile, and lets it continue; returns what it created afterwards. */
  async function around(
    hold: () => Gate,
    { doing, kind }: { doing: Doing; kind: 'session' | 'token' },
    act: (id: string) => Promise<void>,
  ) {
    const user = await someUser();
    const gate = hold();
    const response = doing.do(user[kind], user);
    await gate.arrived;
    await act(user.id);
    const before = theirs(user.id);
    gate.open();
    const { status } = await response;
    return { status, before, after: theirs(user.id) };
  }

  const remove = async (id: string) => {
    expect((await admin.delete(`/users/${id}`)).status).toBe(200);
  };
  const removeAndRestore = async (id: string) => {
    await remove(id);
    expect((await admin.post(`/users/${id}/restore`)).status).toBe(200);
  };

  describe.each(gates)('%s', (_, fits, hold) => {
    it.each(cases.filter(([, , { name }]) => fits(name)))(
      '401, and nothing is made: %s (STORE-7, K7)',
      async (__, kind, doing) => {
        for (const act of [remove, removeAndRestore]) {
          const { status, before, after } = await around(hold, { doing, kind }, act);
          expect([status, after]).toEqual([401, before]);
        }
      },
    );
  });

  it.each(cases)('the gate itself changes nothing: %s', async (_, kind, doing) => {
    const { status, before, after } = await around(
      () => holdNext(app.services.db, 'transaction'),
      { doing, kind },
      async () => {},
    );
    expect(status).toBe(doing.done);
    expect(after).not.toEqual(before);
  });

  it('a broken twin that asks no one again lets all of them through but those who prove a password or a session', async () => {
    const services: { reauthorize: AllServices['reauthorize'] } = app.services;
    const { reauthorize } = services;
    const asked = cases.filter(
      ([, , { name }]) => !['refreshes', 'signs in', 'edits a field', 'edits everything'].includes(name),
    );
    try {
      for (const [name, kind, doing] of asked) {
        // Its own deletion needs no one to be asked again either.
        services.reauthorize = async (_, caller) => caller;
        const hold = () => holdNext(app.services.db, 'transaction');
        const { status, before, after } = await around(hold, { doing, kind }, remove);
        expect([name, status]).toEqual([name, doing.done]);
        expect(after).not.toEqual(before);
      }
    } finally {
      services.reauthorize = reauthorize;
    }
  });
});
