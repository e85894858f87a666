import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { linkIn, MailServer, type ReceivedMail } from '../support/mail-server.ts';
import { requestText, sendRaw } from '../support/raw-http.ts';
import { nextTurn, secondConnection } from '../support/second-connection.ts';
import { type Client, type Json, organization, TestApp } from '../support/test-app.ts';

const markup = `<img src=x onerror=alert(1)>"'&amp; {{7*7}} \${7*7} <%= 7*7 %> #{7*7} %s`;
const shown = markup
  .replaceAll('&', '&amp;')
  .replaceAll('<', '&lt;')
  .replaceAll('>', '&gt;')
  .replaceAll('"', '&quot;')
  .replaceAll("'", '&#39;');
const header = 'Bcc: eve@evil.example';
/** Text that no route accepts, and that an earlier release or another program may have stored. */
const injected = `Ann\r\n${header}\r\n\r\n<script>\u2028${header}\u2029${header}\n=?utf-8?Q?=0D=0A${header}?=\u202e`;

let server: MailServer;
let app: TestApp;
let admin: Client;

beforeAll(async () => {
  server = await MailServer.start();
  app = await TestApp.start({ SMTP_URL: server.url, FRONTEND_URL: 'https://id.example.com' });
  admin = await app.setUp();
});
afterAll(async () => {
  await app.close();
  await server.stop();
});
beforeEach(() => server.clear());
afterEach(() => store("UPDATE organizations SET short_name = 'Example Ltd'"));

/** Writes to the store as another process does. */
async function store(sql: string, ...values: readonly unknown[]): Promise<void> {
  const connection = secondConnection(app);
  connection.prepare(sql).run(...values);
  connection.close();
  await nextTurn();
}

/** Returns one mail of each kind, with the organization and the user named like that. */
async function everyMail(
  prefix: string,
  callThem: (userId: string) => Promise<void>,
): Promise<readonly ReceivedMail[]> {
  const address = (name: string) => `${prefix}-${name}@example.com`;
  const ids: string[] = [];
  for (const name of ['gone', 'resent', 'forgetful', 'moving']) {
    const { body } = await admin.post('/users', { fullName: 'Ann', email: address(name) });
    ids.push(body._id);
    await callThem(body._id);
  }
  const [gone, resent, , moving] = ids;
  expect((await admin.delete(`/users/${gone}`)).status).toBe(200);
  const emails = [address('new'), address('gone')];
  expect((await admin.post('/users/bulk/invite', { emails })).status).toBe(200);
  expect((await admin.post(`/users/${resent}/resend-invite`)).status).toBe(200);
  expect((await admin.post('/settings/smtp/test')).status).toBe(200);
  await app.anonymous.post('/userAccount/password/forgot', { email: address('forgetful') });
  expect((await admin.patch(`/users/${moving}/email`, { email: address('moved') })).status).toBe(200);
  const due = [...emails, ...['resent', 'forgetful', 'moving', 'moved'].map(address), 'ada@example.com'];
  await server.until(() => server.mails.length >= due.length, 'a mail of each kind');
  expect(server.mails.map(({ to }) => to.join()).toSorted()).toEqual(due.toSorted());
  return server.mails;
}

/** The header has nothing but what is ours, each once, and the links lead to us. */
function expectHarmless({ headers, subject, from, html, text }: ReceivedMail): void {
  const names = headers.map((line) => line.slice(0, line.indexOf(':')).toLowerCase());
  expect(names.toSorted()).toEqual(
    ['auto-submitted', 'content-type', 'date', 'from', 'message-id', 'mime-version', 'subject', 'to'].toSorted(),
  );
  expect(from).toBe('no-reply@localhost');
  expect(subject).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e]/u);
  expect(html).not.toMatch(/<(?:img|script|iframe|svg|link|object)|\u202e|\son\w+="/i);
  expect(text).not.toMatch(/49\b.*49|\u202e/);
  for (const link of text.match(/https?:\/\/[^\s<>"]+/g) ?? []) expect(link).toMatch(/^https:\/\/id\.example\.com\//);
}

describe('M1: what people are called', () => {
  it('is shown as it is, escaped, in every mail (MAIL-4)', async () => {
    expect((await admin.patch('/org', { shortName: markup })).status).toBe(200);
    const mails = await everyMail('markup', async (id) => {
      expect((await admin.patch(`/users/${id}/fullname`, { fullName: markup })).status).toBe(200);
    });
    for (const mail of mails) {
      expectHarmless(mail);
      expect(mail.subject + mail.text.replaceAll(/\s+/g, ' ')).toContain(markup);
      expect(mail.html).toContain(shown);
    }
  });

  it('400: cannot hold a line end over the API, in no field that a mail shows (MAIL-4, USER-13)', async () => {
    for (const text of [injected, `Ann\n${header}`, 'An\u2028n', 'An\u202en'])
      for (const [path, body] of [
        ['/org', { shortName: text }],
        [`/users/${admin.userId}/fullname`, { fullName: text }],
      ] as const)
        expect((await admin.patch(path, body)).status).toBe(400);
  });

  it('adds no header and no recipient even where the store holds line ends (MAIL-4)', async () => {
    await store('UPDATE organizations SET short_name = ?', injected);
    const mails = await everyMail('injected', (id) =>
      store('UPDATE users SET full_name = ? WHERE id = ?', injected, id),
    );
    for (const mail of mails) {
      expectHarmless(mail);
      expect(mail.html).toContain(header);
      expect(mail.raw.slice(0, mail.raw.indexOf('\r\n\r\n'))).not.toMatch(/^bcc:/im);
    }
  });

  it('is harmless in the welcome mail (MAIL-4, ORG-15)', async () => {
    const other = await TestApp.start({ SMTP_URL: server.url, FRONTEND_URL: 'https://id.example.com' });
    const given = { ...organization, sendEmail: true, shortName: markup, adminFullName: markup };
    expect((await other.anonymous.post('/org', given)).status).toBe(200);
    const mail = await server.mailTo('ada@example.com');
    expectHarmless(mail);
    expect(mail.html).toContain(shown);
    await other.close();
  });
});

describe('M1: a stored address that leads to another mailbox (MAIL-3)', () => {
  const addresses = [
    'ann@example.com,eve@evil.example',
    'ann<eve@evil.example>',
    'eve@evil.example(ann@example.com)',
    'ann@example.com\r\nBcc: eve@evil.example',
    'group: eve@evil.example;',
    '"eve@evil.example" ann@example.com',
  ];

  /** By hand: an answer that tells of such an address is none of those that are documented. */
  async function resend(userId: string): Promise<readonly unknown[]> {
    const headers = { authorization: `Bearer ${admin.credential}` };
    const response = await fetch(`${app.url}/api/v1/users/${userId}/resend-invite`, { method: 'POST', headers });
    const { failed } = (await response.json()) as Json;
    return [response.status, failed];
  }

  it.each(addresses)('502: %j gets no one mail, and is told as failed (INVITE-14)', async (address) => {
    const { body } = await admin.post('/users', { fullName: 'Ann', email: 'ann@example.com' });
    await store('UPDATE users SET email = ? WHERE id = ?', address, body._id);
    expect(await resend(body._id)).toEqual([502, [address]]);
    // The mail to the earlier address of a user is one of those that no request waits for.
    app.logLines.length = 0;
    expect((await admin.patch(`/users/${body._id}/email`, { email: 'ann@example.com' })).status).toBe(200);
    await vi.waitUntil(() => app.logLines.some((line) => line.includes('"kind":"address"')));
    // The new address, which an administrator verified, is the only one that gets a notice.
    await server.mailTo('ann@example.com');
    expect(server.asked).toEqual(['ann@example.com']);
    server.clear();
    await store('UPDATE users SET email = id WHERE id = ?', body._id);
  });

  it.each(addresses)('%j for recovery: no one gets a link (AUTH-49, INVITE-14)', async (address) => {
    const email = 'bob@example.com';
    const { body } = await admin.post('/users', { fullName: 'Bob', email });
    await store('UPDATE users SET recovery_email = ? WHERE id = ?', address, body._id);
    expect(await resend(body._id)).toEqual([502, [email]]);
    app.logLines.length = 0;
    await app.anonymous.post('/userAccount/password/forgot', { email });
    await vi.waitUntil(() => app.logLines.some((line) => line.includes('"kind":"address"')));
    expect([server.asked, server.mails]).toEqual([[], []]);
    await store('UPDATE users SET email = id, recovery_email = NULL WHERE id = ?', body._id);
  });
});

describe('M1: the address that a request names', () => {
  it('is in no link (MAIL-5)', async () => {
    const body = JSON.stringify({ email: 'ada@example.com' });
    const headers = [
      'Host: evil.example',
      'X-Forwarded-Host: evil.example',
      'Forwarded: host=evil.example',
      'Origin: https://evil.example',
      'Referer: https://evil.example/',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ];
    const { answers: responses } = await sendRaw(
      app,
      requestText('POST /api/v1/userAccount/password/forgot HTTP/1.1', headers, body),
    );
    expect(responses[0]?.status).toBe(200);
    const mail = await server.mailTo('ada@example.com');
    expect(linkIn(mail)).toMatch(/^https:\/\/id\.example\.com\/reset-password#token=/);
    expect(mail.raw).not.toContain('evil.example');
  });
});
