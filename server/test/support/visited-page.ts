import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

/** Starts Debian's Chromium, without anything that has it ask its maker's hosts. The caller closes it. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** How Chromium reports a response that is a refusal. */
const refusedByServer = /^Failed to load resource: the server responded with a status of (\d+)/;

/** A page in a browser profile of its own, and what was wrong with it. */
export interface VisitedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors on the console, and requests to other origins. */
  readonly complaints: string[];
}

interface Visit {
  readonly url: string;
  /** Statuses of refusals that may show on the console. */
  readonly expected?: readonly number[];
  /** Runs in the page before its own scripts. */
  readonly script?: string;
}

/** Opens a page in a new profile. The caller closes the context. */
export async function visitPage(browser: Browser, { url, expected = [], script }: Visit): Promise<VisitedPage> {
  const { origin } = new URL(url);
  const context = await browser.newContext();
  const page = await context.newPage();
  if (script !== undefined) await page.addInitScript({ content: script });
  const complaints: string[] = [];
  page.on('request', (request) => {
    const asked = request.url();
    if (!asked.startsWith(`${origin}/`) && !asked.startsWith('data:')) complaints.push(`asked ${asked}`);
  });
  page.on('console', (message) => {
    const status = Number(refusedByServer.exec(message.text())?.[1]);
    if (message.type() === 'error' && !expected.includes(status)) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(url);
  return { page, context, complaints };
}
