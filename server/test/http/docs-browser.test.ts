import { chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestApp } from '../support/test-app.ts';

/** Debian's Chromium; the rest keeps it from asking its maker's hosts for anything. */
const launch = {
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
};

describe('GET /docs in a browser', () => {
  let app: TestApp;

  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  it('shows the operations, all from this host and within its content policy (RUN-8, HTTP-7)', async () => {
    const browser = await chromium.launch(launch);
    try {
      const page = await browser.newPage();
      const foreign: string[] = [];
      const complaints: string[] = [];
      page.on('request', (request) => {
        const url = request.url();
        if (!url.startsWith(app.url) && !url.startsWith('data:')) foreign.push(url);
      });
      page.on('console', (message) => {
        if (message.type() === 'error') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      await page.goto(`${app.url}/docs`);
      await page.getByText('/api/v1/personal-access-tokens/scopes').first().waitFor();
      await page.getByText('Create a personal access token', { exact: false }).first().click();
      await page.getByText('expiryDays').first().waitFor();
      expect(foreign).toEqual([]);
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
