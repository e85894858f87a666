import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Inviting } from '../../../test/support/inviting.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import type { Json } from '../../../test/support/test-app.ts';

describe('POST /users/bulk/invite: what it takes', () => {
  let it1: Inviting;

  beforeAll(async () => {
    it1 = await Inviting.start();
  });
  afterAll(() => it1.close());

  /** Sends what is refused, and makes sure that it left nothing: no row, no mail. */
  async function refused(body: unknown, client = it1.admin) {
    const [rows, asked] = [storedRows(it1.app), it1.mail.asked.length];
    const response = await client.post('/users/bulk/invite', body);
    expect([storedRows(it1.app), it1.mail.asked.length]).toEqual([rows, asked]);
    return response;
  }

  it('200: one person and one mail for an address in five spellings, each of them twice (N3, INVITE-4, USER-9)', async () => {
    const spellings = [
      'x.y@bücher.example',
      '  X.Y@B\u00dcCHER.Example\t',
      'x.y@ｂücher。example',
      'x.y@bu\u0308cher.example',
      'X.y@xn--bcher-kva.EXAMPLE',
    ];
    const since = await it1.mark();
    expect((await it1.invite([...spellings, ...spellings])).status).toBe(200);
    const { events } = await since();
    const email = 'x.y@xn--bcher-kva.example';
    expect(events.map(({ payload }) => payload.email)).toEqual([email]);
    expect(it1.mail.mailsTo(email)).toHaveLength(1);
    expect((await it1.invite(spellings)).status).toBe(409);
  });

  it('409: everyone has an active account, in no other words than { errorMessage } (INVITE-13, ERR-4)', async () => {
    const { email } = await it1.invitee();
    const { status, body } = await refused({ emails: [email.toUpperCase(), 'ada@example.com'] });
    expect(Object.keys(body)).toEqual(['errorMessage']);
    expect([status, body.errorMessage]).toEqual([409, expect.stringContaining('active account')]);
  });

  const good = (count: number) => Array.from({ length: count }, (_, place) => `many-${place}@example.com`);
  it.each<[string, Json, string]>([
    ['no list', {}, 'body.emails'],
    ['a string', { emails: 'a@example.com' }, 'body.emails'],
    ['an empty list', { emails: [] }, 'body.emails'],
    ['null', { emails: null }, 'body.emails'],
    ['1,001 addresses', { emails: good(1_001) }, 'body.emails'],
    ['one bad address among 1,000', { emails: good(1_000).with(500, 'many-500@example') }, 'body.emails.500'],
    ['an address of two people', { emails: ['a@example.com,b@example.com'] }, 'body.emails.0'],
    ['an address in angle brackets', { emails: ['x<evil@evil.io>'] }, 'body.emails.0'],
    ['something that is no text', { emails: ['a@example.com', { $ne: null }] }, 'body.emails.1'],
    ['groups that are no list', { emails: ['a@example.com'], groupIds: 'f'.repeat(24) }, 'body.groupIds'],
    ['a group that is no id', { emails: ['a@example.com'], groupIds: ['everyone'] }, 'body.groupIds.0'],
    [
      '101 groups',
      { emails: ['a@example.com'], groupIds: good(101).map((_, n) => n.toString().padStart(24, '0')) },
      'body.groupIds',
    ],
  ])('400: %s; nothing happens (N5, INVITE-3, INVITE-4)', async (_, given, field) => {
    const { status, body } = await refused(given);
    expect([status, body.error.code, body.error.details[0].field]).toEqual([400, 'VALIDATION_ERROR', field]);
  });

  it('400: groups that do not exist, or no longer, are named; nothing happens (INVITE-5)', async () => {
    const [real, gone] = [await it1.newGroup(), await it1.newGroup()];
    await it1.admin.delete(`/userGroups/${gone.id}`);
    const groupIds = [real.id, 'f'.repeat(24), gone.id];
    const { status, body } = await refused({ emails: it1.fresh(2), groupIds });
    expect(status).toBe(400);
    expect(body.error.details.map(({ field }: Json) => field)).toEqual(['body.groupIds.1', 'body.groupIds.2']);
    expect((await refused({ emails: ['ada@example.com'], groupIds })).status).toBe(400);
  });
});
