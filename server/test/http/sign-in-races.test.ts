import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { holdNext, holdUntil } from '../support/gates.ts';
import { forgetful } from '../support/interleaving.ts';
import { tokenIn } from '../support/mail-server.ts';
import { codeIn, otherCode, SignInDesk } from '../support/sign-in-desk.ts';
import { type Client, password, type TestResponse } from '../support/test-app.ts';

const atOnce = 32;

let desk: SignInDesk;
let user: Client;
let email = '';
let users = 0;
beforeAll(async () => {
  desk = await SignInDesk.start();
});
afterAll(() => desk.close());

beforeEach(async () => {
  await desk.setSteps(['password', 'otp']);
  users += 1;
  email = `some-${users}@example.com`;
  user = await desk.app.member(desk.admin, email);
});

const statuses = (responses: readonly TestResponse[]) =>
  responses.map(({ status }) => status).sort((one, two) => one - two);
const oneOf = (count: number) => [200, ...Array.from({ length: count - 1 }, () => 401)];

async function sessions(): Promise<number> {
  const rows = desk.app.services.db.read.selectFrom('sessions').where('user_id', '=', user.userId).select('id');
  return (await rows.execute()).length;
}

/** Signs in several times with one code, each held once it has proved the code, until all have. */
async function signInAtOnce(code: string): Promise<{ answers: TestResponse[]; made: number }> {
  const before = await sessions();
  const tokens = await Promise.all(Array.from({ length: atOnce }, () => desk.begin(email)));
  holdUntil(desk.app.services.keys, 'sign', atOnce);
  const responses = await Promise.all(tokens.map((token) => desk.take(token, ['otp', code])));
  return { answers: responses, made: (await sessions()) - before };
}

describe('one code, many at once (AUTH-9, AUTH-42)', () => {
  it('200 for one, 401 for the others, and one session', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { answers: responses, made } = await signInAtOnce(await desk.codeFor(email));
      expect([statuses(responses), made]).toEqual([oneOf(atOnce), 1]);
    }
  });

  it('200 for all where a code is not used up: the test sees it', async () => {
    const { db } = desk.app.services;
    const { transaction } = db;
    const code = await desk.codeFor(email);
    db.transaction = (work) => transaction((tx) => work(forgetful(tx, ['insertInto', 'mailed_codes'])));
    try {
      const { answers: responses, made } = await signInAtOnce(code);
      expect([new Set(statuses(responses)), made]).toEqual([new Set([200]), atOnce]);
    } finally {
      db.transaction = transaction;
    }
  });

  it('401 for the right one after 32 wrong ones at once, of which five were counted', async () => {
    const code = await desk.codeFor(email);
    const tokens = await Promise.all(Array.from({ length: atOnce }, () => desk.begin(email)));
    holdUntil(desk.app.services.db, 'transaction', atOnce);
    const tries = tokens.map((token, place) => desk.take(token, ['otp', otherCode(code, place + 1)]));
    expect(new Set(statuses(await Promise.all(tries)))).toEqual(new Set([401]));
    const rows = desk.app.services.db.read.selectFrom('mailed_codes').where('user_id', '=', user.userId);
    expect(await rows.select('tries').execute()).toEqual([{ tries: 5 }]);
    expect((await desk.signIn(email, 'otp', code)).status).toBe(401);
  });

  it('200 for one of two codes that were asked for at once: the one that came last', async () => {
    desk.mail.clear();
    holdUntil(desk.app.services.db, 'transaction', 2);
    await Promise.all([desk.askForCode(email), desk.askForCode(email)]);
    const codes = desk.mail.mailsTo(email).map(codeIn);
    expect(codes).toHaveLength(2);
    const responses: TestResponse[] = [];
    for (const code of new Set(codes)) responses.push(await desk.signIn(email, 'otp', code));
    expect(statuses(responses).filter((status) => status === 200)).toHaveLength(1);
  });
});

describe('one step of a sign-in, twice at once (AUTH-8, AUTH-10)', () => {
  it('200 once where it is the last step, and one session', async () => {
    await desk.setSteps(['otp'], ['password']);
    const token = await desk.begin(email);
    expect((await desk.take(token, ['otp', await desk.codeFor(email)])).status).toBe(200);
    const before = await sessions();
    holdUntil(desk.app.services.keys, 'sign', 4);
    const responses = await Promise.all(Array.from({ length: 4 }, () => desk.take(token, ['password', password])));
    expect([statuses(responses), (await sessions()) - before]).toEqual([oneOf(4), 1]);
  });

  it('200: the first step twice leads as far as once', async () => {
    await desk.setSteps(['password'], ['otp']);
    const token = await desk.begin(email);
    holdUntil(desk.app.services.db, 'transaction', 2);
    const firsts = await Promise.all([1, 2].map(() => desk.take(token, ['password', password])));
    expect(firsts.map(({ body }) => body.nextStep)).toEqual([1, 1]);
    expect((await desk.take(token, ['otp', await desk.codeFor(email)])).body.message).toBe('Fully authenticated');
  });
});

describe('while someone signs in', () => {
  /** Signs in, held once the password is proved and before anything is written; meanwhile `act` happens. */
  async function signInAround(act: () => Promise<unknown>): Promise<{ status: number; made: number }> {
    const token = await desk.begin(email);
    const before = await sessions();
    const gate = holdNext(desk.app.services.keys, 'sign');
    const response = desk.take(token, ['password', password]);
    await gate.arrived;
    await act();
    gate.open();
    const { status } = await response;
    return { status, made: (await sessions()) - before };
  }

  it('200 where nothing happens: the gate itself changes nothing', async () => {
    expect(await signInAround(() => desk.admin.get('/org'))).toEqual({ status: 200, made: 1 });
  });

  it('401: a second step came to be needed (AUTH-10, AUTH-46)', async () => {
    const outcome = await signInAround(() => desk.setSteps(['password'], ['otp']));
    expect(outcome).toEqual({ status: 401, made: 0 });
  });

  it('401: the password was changed (AUTH-9, PASSWORD-9)', async () => {
    const link = async () => {
      desk.mail.clear();
      await desk.app.anonymous.post('/userAccount/password/forgot', { email });
      return desk.app.with(tokenIn(await desk.mail.mailTo(email)));
    };
    const holder = await link();
    const outcome = await signInAround(() =>
      holder.post('/userAccount/password/reset/token', { password: 'Another-Horse-8' }),
    );
    expect(outcome).toEqual({ status: 401, made: 0 });
  });

  it('401: the person was deleted, or deleted and restored (AUTH-24, AUTH-40)', async () => {
    const gone = await signInAround(() => desk.admin.delete(`/users/${user.userId}`));
    expect(gone).toEqual({ status: 401, made: 0 });
    users += 1;
    email = `some-${users}@example.com`;
    user = await desk.app.member(desk.admin, email);
    const back = await signInAround(async () => {
      await desk.admin.delete(`/users/${user.userId}`);
      await desk.admin.post(`/users/${user.userId}/restore`);
    });
    expect(back).toEqual({ status: 401, made: 0 });
  });

  it('401: the organization was deleted (ORG-26)', async () => {
    const owner = await SignInDesk.start();
    try {
      const token = await owner.begin('ada@example.com');
      const gate = holdNext(owner.app.services.keys, 'sign');
      const response = owner.take(token, ['password', password]);
      await gate.arrived;
      expect((await owner.admin.delete('/org')).status).toBe(200);
      gate.open();
      expect((await response).status).toBe(401);
    } finally {
      await owner.close();
    }
  });
});
