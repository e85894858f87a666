import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const path = '/users/updateAppConfig';
const wrongSecret = 'short-but-secret';

let directory: string;
let file: string;
let app: TestApp;
let service: Client;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'latchkey-CONFIG_HOME-'));
  file = join(directory, 'latchkey.config.json');
  write({ BASE_URL: 'https://id.example.net' });
  app = await TestApp.start({ CONFIG_FILE: file });
  service = app.service(['FETCH_CONFIG']);
});
afterEach(async () => {
  await app.close();
  rmSync(directory, { recursive: true });
});

function write(content: unknown): void {
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
}

/** Returns the audit records of reloads. */
async function audited(): Promise<Json[]> {
  return (await app.audit()).filter(({ action }) => action === 'config.reloaded');
}

function expectRefused({ status, body }: TestResponse, variable: string): void {
  const message = `The new configuration is not valid, and the old one stays: ${variable} is not valid; see the log`;
  expect({ status, body }).toEqual({
    status: 400,
    body: { message, error: { code: 'BAD_REQUEST', message, requestId: expect.any(String) } },
  });
}

describe('POST /users/updateAppConfig', () => {
  it('200: reads the file anew and answers the three URLs and nothing else (SERVICE-6, CONFIG-12, CONFIG-26)', async () => {
    const own = { authBackend: 'https://id.example.net', communicationBackend: 'https://id.example.net' };
    const responded = {
      message: 'Configuration updated successfully',
      config: { ...own, frontendUrl: 'https://id.example.net' },
    };
    expect(await service.post(path)).toMatchObject({ status: 200, body: responded });
    const frontend = { BASE_URL: 'https://id.example.net', FRONTEND_URL: 'https://www.example.net/' };
    write(frontend);
    const { body } = await service.post(path, {});
    expect(body).toEqual({ ...responded, config: { ...own, frontendUrl: 'https://www.example.net' } });
    write({
      ...frontend,
      AUTH_BACKEND_URL: 'https://auth.example.net',
      COMMUNICATION_BACKEND_URL: 'https://mail.example.net',
    });
    expect((await service.post(path)).body.config).toEqual({
      authBackend: 'https://auth.example.net',
      communicationBackend: 'https://mail.example.net',
      frontendUrl: 'https://www.example.net',
    });
  });

  it('200: is written into the audit log, with who asked from where', async () => {
    const headers = { 'x-request-id': 'reload-7' };
    expect((await service.post(path, undefined, { headers })).status).toBe(200);
    expect(await audited()).toMatchObject([
      {
        org_id: null,
        actor_user_id: null,
        actor_token_id: null,
        subject_id: null,
        network: '127.0.0.1',
        request_id: 'reload-7',
      },
    ]);
  });

  it('200: takes the tokens of registered clients, and the other spelling of the scope (SERVICE-13)', async () => {
    const admin = await app.setUp();
    const client = await admin.post('/service-clients', { name: 'front end', scopes: ['fetch:config'] });
    const { clientId: client_id, clientSecret: client_secret } = client.body;
    const grant = { grant_type: 'client_credentials', client_id, client_secret };
    const { access_token: token } = (await app.anonymous.post('/oauth2/token', grant)).body;
    expect((await app.with(token).post(path)).status).toBe(200);
    expect((await app.service(['fetch:config']).post(path)).status).toBe(200);
  });

  it('401, 403: is for services with the scope only, and reads nothing for anyone else (SERVICE-1, SERVICE-3)', async () => {
    const admin = await app.setUp();
    const token = await admin.token();
    const before = app.services.config;
    for (const client of [app.anonymous, admin, token]) expect((await client.post(path)).status).toBe(401);
    for (const scopes of [['USER_LOOKUP'], [], 'FETCH_CONFIG']) {
      expect((await app.service(scopes).post(path)).status).toBe(403);
    }
    expect(app.services.config).toBe(before);
    expect(await audited()).toEqual([]);
  });

  it.each<[string, () => void, string]>([
    ['a wrong value', () => write({ METRICS: 'everywhere' }), 'METRICS'],
    ['a secret that is none', () => write({ SCOPED_JWT_SECRET: wrongSecret, JWT_SECRET: wrongSecret }), 'JWT_SECRET'],
    ['a password in an address', () => write({ FRONTEND_URL: `https://x:${wrongSecret}@example.net` }), 'FRONTEND_URL'],
    ['a name that is none', () => write({ [`NO_${wrongSecret}`]: 'x' }), 'CONFIG_FILE'],
    ['broken JSON', () => write(`{ "SMTP_URL": "smtp://x:${wrongSecret}`), 'CONFIG_FILE'],
    ['a file that is gone', () => rmSync(file), 'CONFIG_FILE'],
    ['a wrong file of scopes', () => write({ SCOPES_FILE: file }), 'SCOPES_FILE'],
    ['a file of scopes that is no file', () => write({ SCOPES_FILE: directory }), 'SCOPES_FILE'],
  ])(
    '400: %s is named; no path and no secret is told, and all stays as it was (CONFIG-27)',
    async (_, spoil, variable) => {
      const before = app.services.config;
      spoil();
      const response = await service.post(path);
      expectRefused(response, variable);
      for (const told of [directory, 'CONFIG_HOME', wrongSecret]) expect(response.text).not.toContain(told);
      expect(app.services.config).toBe(before);
      expect(await audited()).toEqual([]);
      const reasons = app.logLines.map((line) => JSON.parse(line)).filter(({ reason }) => reason !== undefined);
      expect(reasons).toMatchObject([{ level: 50, msg: 'the old configuration stays' }]);
      expect(reasons[0].reason).toMatch(new RegExp(`${variable}|${directory}`));
      const { text } = await app.services.metrics.expose();
      expect(text).not.toContain('configurationWrong');
      write({ BASE_URL: 'https://id.example.net' });
      expect((await service.post(path)).status).toBe(200);
    },
  );

  it('400: a wrong variable of the environment is named like one of the file (CONFIG-23, CONFIG-27)', async () => {
    const before = app.services.config;
    app.environment['TRUST_PROXY'] = '0.0.0.0/0';
    expectRefused(await service.post(path), 'TRUST_PROXY');
    Object.assign(app.environment, { TRUST_PROXY: '', METRICS: 'on', METRICS_FILE: file });
    expectRefused(await service.post(path), 'METRICS');
    app.environment['METRICS'] = '';
    rmSync(file);
    write({ METRICS: 'off' });
    app.environment['METRICS_FILE'] = join(directory, 'nothing');
    expectRefused(await service.post(path), 'METRICS_FILE');
    expect(app.services.config).toBe(before);
  });
});
