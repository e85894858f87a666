import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestApp } from '../support/test-app.ts';
import { launchChromium, visitPage } from '../support/visited-page.ts';

describe('GET /docs in a browser', () => {
  let app: TestApp;

  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  it('shows the operations, all from this host and within its content policy (RUN-8, HTTP-7)', async () => {
    const browser = await launchChromium();
    try {
      const { page, complaints } = await visitPage(browser, { url: `${app.url}/docs` });
      await page.getByText('/api/v1/personal-access-tokens/scopes').first().waitFor();
      await page.getByText('Create a personal access token', { exact: false }).first().click();
      await page.getByText('expiryDays').first().waitFor();
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
