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
      await page.getByText('/api/v1/org/exists').first().waitFor();
      // The page has so many operations that it shows those in view only.
      const creation = page.getByText('Create a personal access token', { exact: false }).first();
      await page.mouse.move(600, 400);
      while (!(await creation.isVisible())) await page.mouse.wheel(0, 300);
      await creation.click();
      await page.getByText('expiryDays').first().waitFor();
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
