import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Inviting } from '../../../test/support/inviting.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import type { Client, Json } from '../../../test/support/test-app.ts';

interface Sent {
  readonly content: string | Uint8Array<ArrayBuffer>;
  readonly fields?: Readonly<Record<string, string>>;
}

describe('POST /users/bulk/invite/upload', () => {
  let it1: Inviting;

  beforeAll(async () => {
    it1 = await Inviting.start();
  });
  afterAll(() => it1.close());

  function send(
    content: string | Uint8Array<ArrayBuffer>,
    fields: Readonly<Record<string, string>> = {},
    client: Client = it1.admin,
  ) {
    const form = new FormData();
    form.append('file', new Blob([content]), 'users.csv');
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    return client.call('POST', '/users/bulk/invite/upload', { form });
  }
  async function found(search: string): Promise<Json> {
    return (await it1.admin.get(`/users?page=1&search=${search}`)).body.users;
  }

  it.each(['"', ' ', "' "])('400: a megabyte of %j in a cell is read in linear time (FIT-78)', async (mark) => {
    const filling = mark.repeat(Math.floor(999_000 / mark.length));
    for (const cell of [`x${filling}x@`, `${filling}x@`, `a@file.example${filling}`]) {
      expect((await send(cell)).status).toBe(400);
    }
  });

  it('200: the addresses of all columns, each once, with what is around them gone (FIT-78)', async () => {
    const lines = [
      '\ufeffName;Address',
      '"Lovelace, Ada";"one@file.example"',
      ' two@file.example \t Three@File.example',
      "'ONE@file.example',",
      '',
    ];
    const { status, body } = await send(lines.join('\r\n'));
    expect([status, body]).toEqual([200, { message: 'Invite sent successfully' }]);
    const users = await found('@file.example');
    expect(users.map(({ email }: Json) => email).sort()).toEqual([
      'one@file.example',
      'three@file.example',
      'two@file.example',
    ]);
    expect(it1.mail.mailsTo('one@file.example')).toHaveLength(1);
    expect((await send('one@file.example')).status).toBe(409);
  });

  it('200: into groups, and as administrators (FIT-77, FIT-78)', async () => {
    const { _id } = (await it1.admin.post('/userGroups', { name: 'From a file', type: 'custom' })).body;
    expect((await send('group@file.example', { groupIds: JSON.stringify([_id]), role: 'member' })).status).toBe(200);
    expect((await found('group@'))[0]).toMatchObject({ role: 'Member', groupCount: 1 });
    expect((await send('admin@file.example', { role: 'admin' })).status).toBe(200);
    expect((await found('admin@file'))[0]).toMatchObject({ role: 'Admin' });
    const { status } = await it1.admin.post('/users/bulk/invite', { emails: ['chief@file.example'], role: 'admin' });
    expect([status, (await found('chief@'))[0].role]).toEqual([200, 'Admin']);
  });

  it('403: no token makes an administrator, whatever its scopes; what it was to invite is not there (FIT-77, LEAVER-1)', async () => {
    const token = await it1.admin.token();
    const refused = [
      await token.post('/users/bulk/invite', { emails: ['token@file.example'], role: 'admin' }),
      await send('token@file.example', { role: 'admin' }, token),
    ];
    expect(refused.map(({ status }) => status)).toEqual([403, 403]);
    expect(await found('token@file')).toEqual([]);
    const narrow = await it1.admin.token({ scopes: ['user:invite'] });
    expect((await send('token@file.example', { groupIds: '[]' }, narrow)).body.error.code).toBe('INSUFFICIENT_SCOPE');
    const other = await it1.admin.token({ scopes: ['user:read'] });
    expect((await send('token@file.example', {}, other)).status).toBe(403);
  });

  const many = Array.from({ length: 1_001 }, (_, place) => `many-${place}@file.example`).join('\n');
  it.each<[string, Sent, string]>([
    [
      'an address that is not valid',
      { content: 'good@file.example\nbad@\n' },
      'line 2: bad@ is not a valid e-mail address',
    ],
    [
      'a name with the address',
      { content: 'Good <good@file.example>' },
      'line 1: Good <good@file.example> is not a valid',
    ],
    ['no address', { content: 'name,address\nAda,\n' }, 'must hold at least one e-mail address'],
    ['nothing', { content: '' }, 'must hold at least one e-mail address'],
    ['too many', { content: many }, 'must hold at most 1000 e-mail addresses'],
    [
      'a spreadsheet',
      { content: new Uint8Array(Buffer.from('PK\u0003\u0004\0\0good@file.example')) },
      'must be a CSV file in UTF-8',
    ],
    [
      'Latin-1',
      { content: new Uint8Array(Buffer.from('J\u00fcrgen,good@file.example', 'latin1')) },
      'must be a CSV file in UTF-8',
    ],
    ['groups that are no JSON', { content: 'good@file.example', fields: { groupIds: 'x' } }, 'must be JSON'],
    [
      'groups that are no ids',
      { content: 'good@file.example', fields: { groupIds: '["x"]' } },
      'must be 24 hexadecimal characters',
    ],
    [
      'groups that do not exist',
      { content: 'good@file.example', fields: { groupIds: `["${'f'.repeat(24)}"]` } },
      'does not exist',
    ],
    ['another role', { content: 'good@file.example', fields: { role: 'owner' } }, 'must be one of member, admin'],
    ['another field', { content: 'good@file.example', fields: { group: 'x' } }, 'is not a known field of the form'],
    [
      'more parts',
      { content: 'good@file.example', fields: { groupIds: '[]', role: 'member', more: '' } },
      'no other parts',
    ],
    [
      'a long field',
      { content: 'good@file.example', fields: { groupIds: `[${' '.repeat(9_000)}]` } },
      'shorter fields',
    ],
  ])('400: %s, and nothing happens (FIT-78)', async (_, { content, fields }, message) => {
    const [rows, asked] = [storedRows(it1.app), it1.mail.asked.length];
    const { status, body, text } = await send(content, fields);
    expect([status, text]).toEqual([400, expect.stringContaining(message)]);
    expect(body.error.details[0].field).toMatch(/^body\./);
    expect([storedRows(it1.app), it1.mail.asked.length]).toEqual([rows, asked]);
  });

  it('400, 413, 415: a form without a file, one over 1 MB, JSON (FIT-78)', async () => {
    const form = new FormData();
    form.append('role', 'member');
    const none = await it1.admin.call('POST', '/users/bulk/invite/upload', { form });
    expect([none.status, none.body.error.details[0]]).toEqual([400, { field: 'body.file', message: 'is required' }]);
    expect((await send(`${'x'.repeat(1_048_576)}@`)).status).toBe(413);
    const json = await it1.admin.post('/users/bulk/invite/upload', { emails: ['good@file.example'] });
    expect(json.status).toBe(415);
  });
});
