import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../support/test-app.ts';
import { launchChromium, type VisitedPage, visitPage } from '../support/visited-page.ts';

const chosen = 'Brand-New-Horse-8';
const route = '/api/v1/userAccount/password/reset/token';
const started = 'http.server.request.start';
const ownFiles = ['GET /reset-password', 'GET /reset-password/page.css', 'GET /reset-password/page.js'];

/** Script of the most eager scanner in a page that it opened. */
const scanner = `addEventListener('load', () => {
  for (const field of document.querySelectorAll('input[type=password]')) field.value = 'Scanners-Choice-9';
  document.querySelector('button').click();
  document.querySelector('form').requestSubmit();
  document.querySelector('form').dispatchEvent(new Event('submit', { cancelable: true }));
  document.title = 'scanned';
})`;

interface Arrived {
  readonly what: string;
  readonly headers: Readonly<IncomingMessage['headers']>;
  readonly rawHeaders: readonly string[];
}

describe('the page behind links in mails, in a browser', () => {
  let app: TestApp;
  let admin: Client;
  let browser: Browser;
  let visited: VisitedPage | null = null;
  /** Requests to the service, by any client. */
  let arrived: Arrived[] = [];
  const links: string[] = [];

  const note = (message: unknown) => {
    const { request } = message as { request: IncomingMessage };
    arrived.push({
      what: `${request.method} ${request.url}`,
      headers: request.headers,
      rawHeaders: request.rawHeaders,
    });
  };

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    browser = await launchChromium();
    subscribe(started, note);
  });
  afterEach(async () => {
    await visited?.context.close();
    const complaints = visited?.complaints ?? [];
    visited = null;
    const leaks = links.flatMap((link) => placesOf(secretOf(link)));
    if (complaints.length + leaks.length > 0) throw new Error(JSON.stringify({ complaints, leaks }));
  });
  afterAll(async () => {
    unsubscribe(started, note);
    await browser.close();
    await app.close();
  });

  /** Returns the places where a secret must not be: all requests except their credentials, and the log. */
  function placesOf(secret: string): string[] {
    const requests = arrived.filter(({ what, rawHeaders }) => {
      const others = rawHeaders.filter((_, index) => rawHeaders[index - 1]?.toLowerCase() !== 'authorization');
      return [what, ...others].join('\n').includes(secret);
    });
    const lines = app.logLines.filter((line) => line.includes(secret));
    return [...requests.map(({ what }) => what), ...lines];
  }

  const secretOf = (link: string) => link.split('#token=')[1] ?? link;
  const asked = () => arrived.map(({ what }) => what).sort();
  const sent = () => arrived.filter(({ what }) => what.startsWith('POST'));

  /** Invites a user; returns the fragment of a link to set the first password. */
  async function invited(email: string): Promise<string> {
    const made = await admin.post('/users', { fullName: 'Grace Hopper', email });
    const { status, body, text } = await admin.post(`/users/${made.body._id}/invite-link`);
    expect([status, text]).toEqual([201, expect.stringContaining('/reset-password#token=')]);
    links.push(body.link);
    arrived = [];
    return `#token=${secretOf(body.link)}`;
  }

  /** Opens the page in a new profile; `expected` are the statuses of refusals that may show. */
  async function visit(fragment: string, expected: readonly number[] = [], script = ''): Promise<Page> {
    await visited?.context.close();
    visited = await visitPage(browser, { url: `${app.url}/reset-password${fragment}`, expected, script });
    return visited.page;
  }

  async function choose(page: Page, first: string, again = first): Promise<void> {
    await page.getByLabel('New password').fill(first);
    await page.getByLabel('The same password again').fill(again);
    await page.getByRole('button', { name: 'Set password' }).click();
  }

  const headed = (page: Page, title: string) => page.getByRole('heading', { name: title, exact: true }).waitFor();
  const told = (page: Page, text: string) => page.getByRole('alert').filter({ hasText: text }).waitFor();

  it('opening a link by GET, HEAD or a browser that runs scripts uses nothing up; a person sets a password and signs in (N8, PASSWORD-11, PASSWORD-14)', async () => {
    const fragment = await invited('opened@example.com');
    for (const method of ['GET', 'HEAD']) {
      await app.anonymous.call(method, '//reset-password');
      await app.anonymous.call(method, '/userAccount/password/reset/token', {
        headers: { authorization: `Bearer ${fragment.replace('#token=', '')}` },
      });
    }
    arrived = [];
    const opened = await visit(fragment);
    await opened.waitForLoadState('networkidle');
    await opened.getByLabel('New password').waitFor();
    expect(asked()).toEqual(ownFiles);

    const page = await visit(fragment);
    await choose(page, chosen);
    await headed(page, 'Your password is set');
    await page.getByText('You can sign in now').waitFor();
    expect(sent().map(({ what }) => what)).toEqual([`POST ${route}`]);
    expect((await app.signInTokens('opened@example.com', chosen)).status).toBe(200);
  });

  it('a scanner that fills the form in and sends it by script gets nowhere (N8, PASSWORD-11)', async () => {
    const fragment = await invited('scanned@example.com');
    const page = await visit(fragment, [], scanner);
    await page.waitForFunction("document.title === 'scanned'");
    await page.waitForLoadState('networkidle');
    expect(asked()).toEqual(ownFiles);
    await choose(page, chosen);
    await headed(page, 'Your password is set');
  });

  it('a link that was used says so, and what was set stays (PASSWORD-12)', async () => {
    const fragment = await invited('used@example.com');
    const first = await visit(fragment);
    await choose(first, chosen);
    await headed(first, 'Your password is set');
    const again = await visit(fragment, [410]);
    await choose(again, 'Another-Horse-9');
    await headed(again, 'This link no longer works');
    await again.getByText('ask for a new link').waitFor();
    expect(await again.getByLabel('New password').isVisible()).toBe(false);
    expect((await app.signInTokens('used@example.com', chosen)).status).toBe(200);
  });

  it('a weak password is told its rules and uses nothing up (PASSWORD-1)', async () => {
    const page = await visit(await invited('weak@example.com'), [400]);
    await choose(page, 'abcdefgh');
    await told(page, 'The password must hold an upper-case letter.');
    await told(page, 'The password must hold a digit.');
    await told(page, 'The password must hold a special character.');
    const field = page.getByLabel('New password');
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    expect(await page.evaluate('document.activeElement.id')).toBe('password');
    await choose(page, chosen);
    await headed(page, 'Your password is set');
  });

  it('two passwords that differ, or none, are not sent', async () => {
    const page = await visit(await invited('differs@example.com'));
    await choose(page, chosen, `${chosen} `);
    await told(page, 'The two passwords are not the same.');
    await choose(page, '');
    await told(page, 'Please type a new password.');
    expect(sent()).toEqual([]);
  });

  it('what is no link is told so: by the service, or at once where it could not even be sent', async () => {
    const page = await visit('#token=lkl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', [401]);
    await choose(page, chosen);
    await headed(page, 'This link is not valid');
    arrived = [];
    const broken = await visit('#token=lkl_%E2%80%A6%0d%0ax');
    await headed(broken, 'This link is not valid');
    expect(sent()).toEqual([]);
  });

  it.each(['', '#token=&other=x'])('without a token (%j) it says what to do', async (fragment) => {
    const page = await visit(fragment);
    await headed(page, 'Open the link from your mail');
    expect(await page.getByRole('button').allTextContents()).toEqual(['Continue']);
  });

  it('a link whose # became %23 on its way works, and its secret is in no log and not in the address bar (FIT-28)', async () => {
    const fragment = await invited('rewritten@example.com');
    const address = `${app.url}/reset-password${fragment.replace('#', '%23')}`;
    await visited?.context.close();
    visited = await visitPage(browser, { url: address });
    const { page } = visited;
    await choose(page, chosen);
    await headed(page, 'Your password is set');
    expect([page.url(), app.logLines.join().includes(secretOf(fragment))]).toEqual([
      `${app.url}/reset-password`,
      false,
    ]);
    expect(arrived.filter(({ what }) => what.includes(secretOf(fragment))).map(({ what }) => what)).toEqual([
      `GET ${new URL(address).pathname}`,
    ]);
    // The secret was in that request, as the program that rewrote it wanted.
    arrived = [];
  });

  it('a link that was rewritten, pasted whole, or its secret alone, works; other text does not (FIT-28)', async () => {
    const link = `${app.url}/reset-password${await invited('pasted@example.com')}`;
    const page = await visit('');
    const field = page.getByLabel('The link in your mail');
    const paste = async (text: string) => {
      await field.fill(text);
      await page.getByRole('button', { name: 'Continue' }).click();
    };
    await paste('https://example.com/no/link');
    await told(page, 'There is no link of ours in this text.');
    await paste(`https://eur01.safelinks.example/?url=${encodeURIComponent(link)}&data=05%7C02%7C`);
    await page.getByLabel('New password').waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('password');
    await page.reload();
    await paste(`  ${secretOf(link)}\n`);
    await choose(page, chosen);
    await headed(page, 'Your password is set');
    expect(sent()).toHaveLength(1);
  });

  it('the secret leaves the address bar at once, is kept nowhere, and is asked for again after a reload', async () => {
    const fragment = await invited('kept@example.com');
    const page = await visit(fragment);
    await page.getByLabel('New password').waitFor();
    expect(page.url()).toBe(`${app.url}/reset-password`);
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, document.cookie, document.body.outerHTML])',
    );
    expect(kept).not.toContain(secretOf(fragment));
    await page.reload();
    await headed(page, 'Open the link from your mail');
    // The same page, so that the browser only moves within it.
    await page.goto(`${app.url}/reset-password${fragment}`);
    await choose(page, chosen);
    await headed(page, 'Your password is set');
    expect(await page.evaluate('history.length')).toBeLessThan(4);
  });

  it('without a connection, or while the service cannot answer, one may try again', async () => {
    const page = await visit(await invited('patient@example.com'), [503, 429]);
    await visited?.context.setOffline(true);
    await choose(page, chosen);
    await told(page, 'The server could not be reached.');
    expect(visited?.complaints.splice(0)).toEqual([expect.stringContaining('ERR_INTERNET_DISCONNECTED')]);
    await visited?.context.setOffline(false);
    for (const [status, later, text] of [
      [503, '7', 'That did not work. Please try again in 7 seconds.'],
      [429, '600', 'There were too many attempts. Please try again in 10 minutes.'],
      [429, '', 'There were too many attempts. Please try again in a moment.'],
    ] as const) {
      await page.route(
        `**${route}`,
        (each) => each.fulfill({ status, headers: { 'retry-after': later }, body: 'no' }),
        {
          times: 1,
        },
      );
      await choose(page, chosen);
      await told(page, text);
    }
    expect(sent()).toEqual([]);
    await choose(page, chosen);
    await headed(page, 'Your password is set');
  });

  it('the keyboard is enough, and what is typed can be shown', async () => {
    const page = await visit(await invited('keys@example.com'));
    const field = page.getByLabel('New password');
    await page.keyboard.press('Tab');
    await page.keyboard.type(chosen);
    expect(await field.getAttribute('type')).toBe('password');
    await page.keyboard.press('Tab');
    await page.keyboard.type(chosen);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    expect(await field.getAttribute('type')).toBe('text');
    expect(await field.inputValue()).toBe(chosen);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await headed(page, 'Your password is set');
    expect(await page.evaluate('document.activeElement.id')).toBe('title');
    expect(await page.evaluate("[...document.querySelectorAll('input')].map(({ value }) => value)")).toEqual([
      '',
      '',
      'on',
      '',
    ]);
  });

  it('sends the password and the secret, and nothing that tells more', async () => {
    const fragment = await invited('sends@example.com');
    const page = await visit(fragment);
    const [request] = await Promise.all([page.waitForRequest(`**${route}`), choose(page, chosen)]);
    await headed(page, 'Your password is set');
    expect(request.postDataJSON()).toEqual({ password: chosen });
    const [{ headers } = { headers: {} }] = sent();
    expect(headers).toMatchObject({
      authorization: `Bearer ${secretOf(fragment)}`,
      'content-type': 'application/json',
    });
    for (const { headers: each } of arrived) expect([each['referer'], each['cookie']]).toEqual([undefined, undefined]);
  });
});
