import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestApp } from '../support/test-app.ts';

let app: TestApp;
beforeAll(async () => {
  app = await TestApp.start();
});
afterAll(() => app.close());

describe.each([
  { page: '/reset-password', passwords: ['new-password', 'new-password'] },
  { page: '/confirm-email', passwords: ['current-password'] },
])('the page behind links in mails: $page', ({ page, passwords }) => {
  const script = `${page}/page.js`;
  const style = `${page}/page.css`;

  const fromRoot = (path: string) => app.anonymous.get(`/${path}`);

  it('200: the page is kept nowhere, listed nowhere, and tells no one where its reader comes from (PASSWORD-14)', async () => {
    const { status, headers } = await fromRoot(page);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('x-robots-tag')).toBe('noindex');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  });

  it('200: what it needs comes from here, named from where the page is', async () => {
    const { text } = await fromRoot(page);
    const named = [...text.matchAll(/(?:src|href|action)="([^"]*)"/g)].map(([, address]) => address);
    expect(new Set(named)).toEqual(new Set(['data:,', style.slice(1), script.slice(1)]));
    for (const address of [script, style]) {
      const { status, headers } = await fromRoot(address);
      expect([status, headers.get('content-type')]).toEqual([
        200,
        address === script ? 'text/javascript; charset=utf-8' : 'text/css; charset=utf-8',
      ]);
    }
  });

  it.each([page, script, style])(
    '%s may fetch from here alone, and neither sends forms nor is framed',
    async (address) => {
      const policy = (await fromRoot(address)).headers.get('content-security-policy') ?? '';
      expect(Object.fromEntries(policy.split('; ').map((part) => part.split(/ (.*)/).slice(0, 2)))).toEqual({
        'default-src': "'none'",
        'script-src': "'self'",
        'style-src': "'self'",
        'img-src': 'data:',
        'connect-src': "'self'",
        'frame-ancestors': "'none'",
        'base-uri': "'none'",
        'form-action': "'none'",
        'require-trusted-types-for': "'script'",
      });
    },
  );

  it('names no other host, and holds no script or style inside the page', async () => {
    const texts = await Promise.all([page, script, style].map(async (address) => (await fromRoot(address)).text));
    for (const text of texts) expect(text).not.toMatch(/https?:|\/\/[a-z]|url\(|@import|innerHTML|eval\(/i);
    expect(texts[0]).not.toMatch(/<script>|\son[a-z]+=|<style|\sstyle=/i);
  });

  it('fields have labels, tell password managers which password is wanted, and have no name to be sent by', async () => {
    const { text } = await fromRoot(page);
    const fields = [...text.matchAll(/<input [^>]*type="password"[^>]*>/g)].map(([field]) => field);
    expect(fields.map((field) => /autocomplete="([^"]*)"/.exec(field)?.[1])).toEqual(passwords);
    for (const field of fields) {
      expect(field).not.toMatch(/\s(?:name|value|maxlength)=/);
      expect(text).toContain(`<label for="${/id="(\w+)"/.exec(field)?.[1]}">`);
    }
    expect(text).toContain('<form id="form" method="post"');
  });

  it.each([page, script, style])('HEAD %s is its GET without the content', async (address) => {
    const [get, head] = await Promise.all(['GET', 'HEAD'].map((method) => app.anonymous.call(method, `/${address}`)));
    expect([head?.status, head?.text]).toEqual([200, '']);
    const changing = new Set(['date', 'x-request-id', 'connection', 'keep-alive']);
    const lasting = (headers: Headers = new Headers()) => [...headers].filter(([name]) => !changing.has(name));
    expect(lasting(head?.headers)).toEqual(lasting(get?.headers));
  });

  it.each([page, script, style])('405: POST %s (ERR-19)', async (address) => {
    const { status, headers } = await app.anonymous.post(`/${address}`, { password: 'Marble-Kettle-7' });
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it.each([`${page}/x`, `${page}//`, page.toUpperCase()])('404: %s, nothing else is there', async (address) => {
    expect((await fromRoot(address)).status).toBe(404);
  });

  it.each([page, script])('302: %s/ leads to the address without the slash (FIT-40)', async (address) => {
    const { status, headers } = await fromRoot(`${address}/?from=mail`);
    expect([status, headers.get('location')]).toEqual([302, `${address}?from=mail`]);
  });
});
