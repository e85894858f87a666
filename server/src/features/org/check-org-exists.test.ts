import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { organization, TestApp } from '../../../test/support/test-app.ts';

describe('GET /org/exists', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  it('200: false before, true after, for anyone and whatever the credential (ORG-16, HTTP-7)', async () => {
    const before = await app.anonymous.get('/org/exists');
    expect(before).toMatchObject({ status: 200, body: { exists: false } });
    expect(Object.keys(before.body)).toEqual(['exists']);
    await app.setUp();
    expect((await app.anonymous.get('/org/exists')).body).toEqual({ exists: true });
    expect(await app.with('no-such-token').get('/org/exists')).toMatchObject({ status: 200, body: { exists: true } });
  });

  it('200: still true once the organization was deleted, so that no one can take the system over (ORG-26)', async () => {
    await app.deleteOrganization();
    expect((await app.anonymous.get('/org/exists')).body).toEqual({ exists: true });
    expect((await app.anonymous.post('/org', organization)).status).toBe(409);
  });
});
