import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { confirmPageScript } from '../../src/http/pages/confirm-page-script.ts';
import { TestApp } from '../support/test-app.ts';

const [page, script, style] = ['/confirm-email', '/confirm-email/page.js', '/confirm-email/page.css'];

describe('the page that confirms an address (ADDRESS-5)', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  it('200: is kept nowhere, and has the policy and the style of the page that sets a password', async () => {
    const kept = (headers: Headers) => [...headers].filter(([name]) => !/date|request-id|length|etag/.test(name));
    for (const [own, other] of [
      [page, '/reset-password'],
      [script, '/reset-password/page.js'],
      [style, '/reset-password/page.css'],
    ]) {
      const [one, two] = [await app.nobody.get(`/${own}`), await app.nobody.get(`/${other}`)];
      expect([one.status, kept(one.headers)]).toEqual([200, kept(two.headers)]);
    }
    const { text } = await app.nobody.get(`/${page}`);
    const named = [...text.matchAll(/(?:src|href|action)="([^"]*)"/g)].map(([, address]) => address);
    expect(new Set(named)).toEqual(new Set(['data:,', style.slice(1), script.slice(1)]));
  });

  /** Runs the script of the page in a page of our own. */
  function open(hash: string, answers: readonly { status: number; body: unknown }[]) {
    const parts = new Map<string, Record<string, unknown>>();
    const listeners: (() => Promise<void>)[] = [];
    const part = (id: string) => {
      const known = parts.get(id) ?? {
        hidden: id !== 'title',
        value: '',
        textContent: '',
        reset: () => {},
        focus: () => {},
        setAttribute: () => {},
        addEventListener: (_: string, act: (event: unknown) => Promise<void>) =>
          listeners.push(() => act({ preventDefault: () => {} })),
      };
      parts.set(id, known);
      return known;
    };
    const sent: { authorization: string; body: unknown }[] = [];
    const addresses: string[] = [];
    runInNewContext(confirmPageScript, {
      document: { getElementById: part, title: '' },
      location: { hash, pathname: page, search: '' },
      history: { replaceState: (_: unknown, __: unknown, address: string) => addresses.push(address) },
      addEventListener: () => {},
      navigator: {},
      URLSearchParams,
      AbortSignal,
      fetch: async (address: string, init: { headers: Record<string, string>; body: string }) => {
        sent.push({ authorization: `${address} ${init.headers['authorization']}`, body: JSON.parse(init.body) });
        const answer = answers[sent.length - 1];
        return { status: answer?.status, json: async () => answer?.body };
      },
    });
    return { part, sent, addresses, submit: async () => listeners[0]?.() };
  }

  it('sends nothing until a person presses the button, asks for the password where it is needed, and says what came of it', async () => {
    const missing = { status: 400, body: { error: { code: 'VALIDATION_ERROR' } } };
    const wrong = { status: 401, body: { error: { code: 'UNAUTHORIZED' } } };
    const { part, sent, addresses, submit } = open('#token=lkl_x', [missing, wrong, { status: 200, body: {} }]);
    expect([sent, addresses, part('form')['hidden']]).toEqual([[], [page], false]);
    await submit();
    expect([part('secret')['hidden'], part('errors')['textContent']]).toEqual([
      false,
      expect.stringContaining('password'),
    ]);
    part('password')['value'] = 'secret';
    await submit();
    expect(part('errors')['textContent']).toBe('This is not the password of your account.');
    await submit();
    const authorization = 'api/v1/userAccount/email/confirm/token Bearer lkl_x';
    expect(sent).toEqual([
      { authorization, body: {} },
      { authorization, body: { currentPassword: 'secret' } },
      { authorization, body: { currentPassword: 'secret' } },
    ]);
    expect([part('form')['hidden'], part('title')['textContent']]).toEqual([true, 'Your address is confirmed']);
  });

  it.each([
    ['', 'Open the link from your mail', []],
    ['#token=%0a', 'This link is not valid', []],
    ['#token=lkl_x', 'This link does not work any more', [{ status: 410, body: null }]],
    ['#token=lkl_x', 'This link is not valid', [{ status: 401, body: { error: { code: 'TOKEN_INVALID' } } }]],
  ])('says of %j: %s', async (hash, title, answers) => {
    const { part, submit } = open(hash, answers);
    await submit();
    expect([part('title')['textContent'], part('form')['hidden']]).toEqual([title, true]);
  });
});
