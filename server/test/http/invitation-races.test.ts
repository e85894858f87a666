import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { holdUntil } from '../support/gates.ts';
import { Inviting } from '../support/inviting.ts';
import type { Client, TestResponse } from '../support/test-app.ts';

let it1: Inviting;
let second: Client;

beforeAll(async () => {
  it1 = await Inviting.start();
  second = await it1.app.member(it1.admin, 'second@example.com');
  await it1.app.promote(second.userId);
});
afterAll(() => it1.close());

describe('many at once, held until all are there', () => {
  const statuses = (responses: readonly TestResponse[]) => responses.map(({ status }) => status).sort((a, b) => a - b);
  function atOnce(sends: readonly (() => Promise<TestResponse>)[]): Promise<TestResponse[]> {
    holdUntil(it1.app.services.db, 'transaction', sends.length);
    return Promise.all(sends.map((act) => act()));
  }
  const by = (place: number) => (place % 2 === 0 ? it1.admin : second);
  const told = async (email: string) => (await it1.app.events()).filter(({ payload }) => payload.email === email);

  it('200 for one of 16 with the same list, 409 for the rest (N5, INVITE-13)', async () => {
    const emails = it1.fresh(20);
    const responses = await atOnce(emails.slice(4).map((_, place) => () => it1.invite(emails, undefined, by(place))));
    expect(statuses(responses)).toEqual([200, ...Array.from({ length: 15 }, () => 409)]);
    for (const email of emails) {
      expect([it1.mail.mailsTo(email).length, (await told(email)).length]).toEqual([1, 1]);
    }
  });

  it('200 for overlapping lists, as long as someone is left for each (N5, INVITE-9)', async () => {
    const emails = it1.fresh(16);
    const lists = emails.map((_, place) => [...emails, ...emails].slice(place, place + 4));
    const responses = await atOnce(lists.map((list, place) => () => it1.invite(list, undefined, by(place))));
    expect(statuses(responses).every((status) => status === 200 || status === 409)).toBe(true);
    for (const email of emails) {
      expect([it1.mail.mailsTo(email).length, (await told(email)).length]).toEqual([1, 1]);
    }
  });

  it('one of 32 gets an address that no one has: by invitation, creation, PATCH or PUT (N4, STORE-5)', async () => {
    for (const turn of [0, 1, 2, 3]) {
      const [email = '', ...others] = it1.fresh(33);
      const movers = others.map((other) => it1.admin.post('/users', { fullName: 'Mover', email: other }));
      const sends = (await Promise.all(movers)).map(({ body: { _id } }, place) => {
        const ways = [
          () => it1.invite([email.toUpperCase()], undefined, by(place)),
          () => by(place).post('/users', { fullName: 'New', email }),
          () => by(place).patch(`/users/${_id}/email`, { email: ` ${email}` }),
          () => by(place).put(`/users/${_id}`, { email }),
        ];
        return ways[(place + turn) % ways.length] as () => Promise<TestResponse>;
      });
      const responses = await atOnce(sends);
      expect(statuses(responses).slice(1)).toEqual(Array.from({ length: 31 }, () => 409));
      expect(statuses(responses)[0]).toBeLessThan(300);
      const invited = responses.some(({ body }) => body.message === 'Invite sent successfully');
      // Whoever got the address by PATCH or PUT is told of it there, behind the request.
      await it1.app.services.afterResponse.close();
      const invitations = it1.mail.mailsTo(email).filter(({ subject }) => /invited/.test(subject));
      expect(invitations).toHaveLength(invited ? 1 : 0);
      expect(await told(email)).toHaveLength(1);
    }
  });
});
