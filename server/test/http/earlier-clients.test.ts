import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Call, calls, type State } from '../support/earlier-client-calls.ts';
import { MailServer } from '../support/mail-server.ts';
import { Client, type Json, organization, TestApp, type TestResponse } from '../support/test-app.ts';

const at = (body: Json, path: string): unknown => path.split('.').reduce((value, key) => value?.[key], body);

describe('calls of clients of the earlier API, as their modules make them (FIT-82)', () => {
  let app: TestApp;
  let mails: MailServer;
  const state: State = { values: {}, clients: {} };

  beforeAll(async () => {
    mails = await MailServer.start();
    // Those clients keep the first refresh token.
    app = await TestApp.start({ SMTP_URL: mails.url, REFRESH_ROTATION: 'off' });
    state.clients['anonymous'] = app.anonymous;
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  async function send({ method, path, by = 'admin', body, headers = () => ({}), form }: Call): Promise<TestResponse> {
    const client = state.clients[by];
    if (!client) throw new Error(`no client ${by}`);
    const sent = body?.(state.values);
    return client.call(method, path(state.values), {
      headers: headers(state.values),
      ...(sent === undefined ? {} : { body: sent }),
      ...(form ? { form: form(state.values) } : {}),
    });
  }

  /** What the next calls need, and no page asks for. */
  async function prepare(needs: Call['needs']): Promise<void> {
    const { values, clients } = state;
    const admin = clients['admin'];
    if (needs === 'users' && admin) {
      const grace = await app.member(admin, 'grace@example.com');
      Object.assign(clients, { grace });
      Object.assign(values, { adminId: admin.userId, graceId: grace.userId });
    }
    if (needs === 'code' || needs === 'link') {
      const form = needs === 'code' ? /\b(\d{6})\b/ : /#token=([\w.-]+)/;
      const found = () => {
        const mine = mails.mails.filter(({ to }) => to.includes(organization.contactEmail));
        return form.exec(mine.at(-1)?.text ?? '')?.[1];
      };
      values[needs] = await vi.waitUntil(found, { timeout: 10_000 });
    }
  }

  it.each(calls.map((call) => [call.name, call] as const))('%s', async (_, call) => {
    await prepare(call.needs);
    const response = await send(call);
    expect(response, response.text).toMatchObject({ status: call.status ?? 200 });
    for (const path of call.reads ?? []) {
      expect([path, at(response.body, path) !== undefined]).toEqual([path, true]);
    }
    expect({ body: response.body }).toMatchObject(call.answers ? { body: call.answers(state.values) } : {});
    for (const [name, path] of Object.entries(call.saves ?? {})) {
      state.values[name] = path === 'x-session-token' ? response.headers.get(path) : at(response.body, path);
    }
    if (call.signsIn) {
      const { accessToken } = response.body;
      const { userId } = JSON.parse(Buffer.from(accessToken.split('.')[1], 'base64url').toString());
      state.clients[call.signsIn] = new Client(app, accessToken, userId);
    }
  });

  it('there are as many as docs/compatibility.md says', () => {
    const refused = calls.filter(({ refusedFor }) => refusedFor !== undefined);
    expect([calls.length, refused.length]).toEqual([90, 8]);
  });
});
