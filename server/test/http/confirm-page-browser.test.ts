import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { tokenIn } from '../support/mail-server.ts';
import { SignInDesk } from '../support/sign-in-desk.ts';
import { type Client, type Json, password } from '../support/test-app.ts';
import { launchChromium, type VisitedPage, visitPage } from '../support/visited-page.ts';

const notConfirmed = { emailVerifiedAt: null };
const confirmed = { emailVerifiedAt: expect.any(String) };

/** A mail scanner that presses every button of a page that it opens. */
const scanner = `addEventListener('load', () => {
  document.querySelector('button').click();
  document.querySelector('form').requestSubmit();
  document.title = 'scanned';
})`;

describe('the page that confirms an address, in a browser (ADDRESS-5)', () => {
  let desk: SignInDesk;
  let browser: Browser;
  let visited: VisitedPage | null = null;
  let users = 0;

  beforeAll(async () => {
    desk = await SignInDesk.start();
    browser = await launchChromium();
  });
  afterEach(async () => {
    await visited?.context.close();
    const complaints = visited?.complaints ?? [];
    visited = null;
    if (complaints.length > 0) throw new Error(complaints.join('\n'));
  });
  afterAll(async () => {
    await browser.close();
    await desk.close();
  });

  /** A user whose new address is unverified, and the secret of the link that was mailed to it. */
  async function changed(more: Json = {}): Promise<{ user: Client; token: string }> {
    users += 1;
    const user = await desk.app.member(desk.admin, `before-${users}@example.com`);
    desk.mail.clear();
    const email = `after-${users}@example.com`;
    expect(await user.patch(`/users/${user.userId}/email`, { email, ...more })).toMatchObject({ body: notConfirmed });
    return { user, token: tokenIn(await desk.mail.mailTo(email)) };
  }
  async function visit(fragment: string, expected: readonly number[] = [], script = ''): Promise<Page> {
    await visited?.context.close();
    visited = await visitPage(browser, { url: `${desk.app.url}/confirm-email${fragment}`, expected, script });
    return visited.page;
  }
  const stateOf = async ({ userId }: Client) => (await desk.admin.get(`/users/${userId}`)).body;
  const press = (page: Page) => page.getByRole('button', { name: 'This address is mine' }).click();
  const headed = (page: Page, title: string) => page.getByRole('heading', { name: title, exact: true }).waitFor();

  it('a user confirms with one press; the same link says afterwards that it was used (ADDRESS-4)', async () => {
    const { user, token } = await changed({ currentPassword: password });
    const page = await visit(`#token=${token}`);
    await page.getByRole('button').waitFor();
    expect([page.url(), await stateOf(user)]).toEqual([
      `${desk.app.url}/confirm-email`,
      expect.objectContaining(notConfirmed),
    ]);
    expect(await page.getByLabel('Password').isVisible()).toBe(false);
    await press(page);
    await headed(page, 'Your address is confirmed');
    expect(await stateOf(user)).toMatchObject(confirmed);
    const again = await visit(`#token=${token}`, [410]);
    await press(again);
    await headed(again, 'This link no longer works');
  });

  it('asks for the password where the address was set without it, and takes no other', async () => {
    const { user, token } = await changed();
    const page = await visit(`#token=${token}`, [400, 401]);
    await press(page);
    await page.getByRole('alert').filter({ hasText: 'the address was entered without it' }).waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('password');
    await press(page);
    await page.getByRole('alert').filter({ hasText: 'Please type your password.' }).waitFor();
    await page.getByLabel('Password').fill('Wrong-Horse-7');
    await press(page);
    await page.getByRole('alert').filter({ hasText: 'This is not the password' }).waitFor();
    expect(await stateOf(user)).toMatchObject(notConfirmed);
    await page.getByLabel('Password').fill(password);
    await page.keyboard.press('Enter');
    await headed(page, 'Your address is confirmed');
    expect(await stateOf(user)).toMatchObject(confirmed);
  });

  it('a scanner that presses the button by script confirms nothing', async () => {
    const { user, token } = await changed({ currentPassword: password });
    const page = await visit(`#token=${token}`, [], scanner);
    await page.waitForFunction("document.title === 'scanned'");
    await page.waitForLoadState('networkidle');
    expect(await stateOf(user)).toMatchObject(notConfirmed);
    await press(page);
    await headed(page, 'Your address is confirmed');
  });

  it.each([
    ['', 'Open the link from your mail', []],
    ['#token=%0a', 'This link is not valid', []],
    ['#token=lkl_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 'This link is not valid', [401]],
  ])('says of %j: %s', async (fragment, title, expected) => {
    const page = await visit(fragment, expected);
    if (expected.length > 0) await press(page);
    await headed(page, title);
    expect(await page.getByRole('button').allTextContents()).toEqual(['Continue']);
  });

  it('takes a rewritten link to allow a change, from its path and pasted, and then another kind of link (FIT-28)', async () => {
    const { user, token } = await changed({ currentPassword: password });
    const page = await visit('%23token=lkl_x%26step%3Dapprove');
    await headed(page, 'Allow another e-mail address');
    expect(page.url()).toBe(`${desk.app.url}/confirm-email`);
    await page.reload();
    const field = page.getByLabel('The link in your mail');
    const go = page.getByRole('button', { name: 'Continue' });
    await field.fill(`https://id.example.com/confirm-email%23token%3D${token}%26step%3Dapprove`);
    await go.click();
    await page.getByRole('button', { name: 'Allow the change' }).waitFor();
    await page.reload();
    await field.fill(`https://id.example.com/confirm-email#token=${token}`);
    await go.click();
    await press(page);
    await headed(page, 'Your address is confirmed');
    expect(await stateOf(user)).toMatchObject(confirmed);
  });
});
