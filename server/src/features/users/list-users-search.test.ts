import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /users?search', () => {
  let app: TestApp;
  let admin: Client;
  let count = 0;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  async function add(fullName: string, email?: string): Promise<string> {
    count += 1;
    const { status, body, text } = await admin.post('/users', { fullName, email: email ?? `s${count}@found.example` });
    if (status !== 201) throw new Error(text);
    return body._id;
  }

  async function found(search: string): Promise<string[]> {
    const { status, body } = await admin.get(`/users?limit=100&search=${encodeURIComponent(search)}`);
    expect(status).toBe(200);
    expect(body.pagination.totalCount).toBe(body.users.length);
    return body.users.map(({ _id }: Json) => _id);
  }

  it.each([
    ['100% sure', '0%', '0x'],
    ['under_score', 'r_s', 'rxs'],
    ['back\\slash', 'k\\s', 'k\\\\s'],
    ['two\\\\slashes', 'o\\\\s', 'o\\\\\\s'],
    ["O'Hara", "o'h", "o''h"],
    ['the "quoted"', '"quo', '""quo'],
    ['dot.star*plus+', '.star*plus+', '.*plus'],
    ['[brackets]', '[brackets]', '[a-z]rackets'],
    ['(group)|or', '(group)|or', 'group|or'],
    ['^start$end', '^start$', '^$'],
    ['{2,3}?', '{2,3}?', '{2}'],
    ['a\\%b', '\\%', '\\%%'],
    ["'; DROP TABLE users; --", "'; drop table", "'; drop  table"],
    ['{{template}}', '{{TEMPLATE', '{{TEMP}}'],
  ])('200: %j is found by %j and not by %j, which are taken literally (USER-16)', async (name, search, other) => {
    const id = await add(name);
    expect(await found(search)).toEqual([id]);
    expect(await found(other)).toEqual([]);
  });

  it.each(['%', '_', '\\', '*', '?', '.', '%%', '__', '%_%'])(
    '200: %j alone is no wildcard (USER-16)',
    async (search) => {
      const holding = (await admin.get('/users')).body.filter(({ fullName, email }: Json) =>
        `${fullName}\n${email}`.includes(search),
      );
      expect((await found(search)).sort()).toEqual(holding.map(({ _id }: Json) => _id).sort());
    },
  );

  it.each([
    ['Latin', 'Ångström Čapek', 'ÅNGSTRÖM č'],
    ['Latin, decomposed', 'Zoë Brontë', 'zoe\u0308 bronte\u0308'],
    ['a decomposed name', 'Jose\u0301 Nun\u0303ez', 'JOSÉ NUÑ'],
    ['Greek, final sigma', 'Οδυσσεύς', 'ΟΔΥΣΣΕΎΣ'],
    ['Greek, sigma as typed half way', 'Ορφεύς Θράκη', 'ορφεύσ'],
    ['Greek, final sigma in the search', 'ΠΈΤΡΟΣ', 'πέτρος'],
    ['Cyrillic', 'Дарья Ёлкина', 'дАРЬЯ ёЛ'],
    ['Armenian', 'Արամ', 'ԱՐԱՄ'],
    ['Georgian', 'ლელა', 'ᲚᲔᲚᲐ'],
    ['Deseret, beyond the first plane', '𐐔𐐯𐑅', '𐐼𐐇𐐝'],
    ['ß for ss', 'Weißgerber', 'WEISSGERBER'],
    ['ss for ß', 'Fussball', 'FUßBALL'],
    ['a capital ẞ', 'GROẞKREUTZ', 'großkreutz'],
    ['ß for a capital ẞ', 'Voßkuhle', 'VOẞKUHLE'],
    ['Turkish capitals', 'İnci Yıldız', 'İNCİ YILDIZ'],
    ['Turkish, as typed elsewhere', 'İlkay Irmak', 'ilkay irmak'],
    ['Turkish, a capital I', 'Işık', 'IŞIK'],
    ['ligatures', 'Graﬃti', 'GRAFFITI'],
    ['digraphs', 'ǅungla', 'ǆUNGLA'],
    ['an emoji of several code points', 'Sam 👩🏽‍🚀 Moon', '👩🏽‍🚀 moon'],
    ['without case', '山田太郎', '田太'],
    ['Hebrew', 'שלום כהן', 'ם כ'],
    ['inner spaces', 'Ann  Two  Spaces', 'nn  TWO'],
  ])('200: in any case: %s (USER-16)', async (_, name, search) => {
    const id = await add(name);
    expect(await found(search)).toEqual([id]);
    expect(await found(name)).toEqual([id]);
    expect(await found(`  ${search}\t`.trim().padEnd(300, ' ').slice(0, 255))).toEqual([id]);
  });

  it('200: in the address, as it was typed or as it is stored (USER-16)', async () => {
    const id = await add('Somebody', 'Mail.BOX+tag@Bücher.example');
    for (const search of ['mail.box+tag', 'MAIL.BOX', '+TAG@', '@XN--BCHER-KVA', 'box+tag@xn--bcher-kva.example']) {
      expect(await found(search)).toEqual([id]);
    }
    const inBoth = await add('needle-7', 'needle-7@found.example');
    expect(await found('NEEDLE-7')).toEqual([inBoth]);
    expect(await found('needle-7 needle-7')).toEqual([]);
  });

  it('200: not in what is neither name nor address (USER-16)', async () => {
    const { body } = await admin.post('/users', {
      fullName: 'Plain',
      email: 'plain@found.example',
      designation: 'Zookeeper',
      mobile: '+4915112345678',
    });
    for (const search of ['zookeeper', '49151', body.slug, body._id, body.orgId])
      expect(await found(search)).toEqual([]);
  });

  it('200: empty and nothing but spaces find everyone (USER-16)', async () => {
    const all = (await admin.get('/users?limit=1')).body.pagination.totalCount;
    for (const search of ['', ' ', '\u3000 ']) {
      const { body } = await admin.get(`/users?limit=1&search=${encodeURIComponent(search)}`);
      expect(body.pagination.totalCount).toBe(all);
    }
  });

  it('200: never a deleted user, by name or by address (USER-1, USER-16)', async () => {
    const id = await add('Vanished Vera', 'vera@found.example');
    expect([await found('vanished'), await found('vera@')]).toEqual([[id], [id]]);
    await app.deleteUser(id);
    expect([await found('vanished'), await found('vera@')]).toEqual([[], []]);
  });

  it('200: any piece of any name finds it, in any case and any normal form (USER-16)', async () => {
    const letters = Array.from('aZäÅßẞσςΣİıéĲǆК%_\\\'"*.^$ñ가😀x');
    const word = fc.array(fc.constantFrom(...letters), { minLength: 1, maxLength: 8 });
    const cut = fc.record({ name: word, from: fc.nat(), length: fc.nat() }).map(({ name, from, length }) => {
      const start = from % name.length;
      return { name: name.join(''), piece: name.slice(start, start + 1 + (length % name.length)).join('') };
    });
    const change = fc.constantFrom<((text: string) => string)[]>(
      (text) => text,
      (text) => text.toUpperCase(),
      (text) => text.toLowerCase(),
      (text) => text.normalize('NFD'),
    );
    const id = await add('To be renamed');
    await fc.assert(
      fc.asyncProperty(cut, change, async ({ name, piece }, changed) => {
        await admin.patch(`/users/${id}/fullname`, { fullName: name });
        expect(await found(changed(piece))).toContain(id);
      }),
      { numRuns: 100 },
    );
  });
});
