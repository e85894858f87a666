import { MailServer, type ReceivedMail, tokenIn } from './mail-server.ts';
import { secondConnection } from './second-connection.ts';
import { type Client, type Json, password, TestApp, type TestResponse } from './test-app.ts';

/** Address of the front end that links in mails lead to in tests. */
export const frontendUrl = 'https://people.example/console';

/** A service with a mail server, and what is often done with invitations. */
export class Inviting {
  readonly app: TestApp;
  admin: Client;
  readonly mail: MailServer;
  #count = 0;

  private constructor(app: TestApp, admin: Client, mail: MailServer) {
    this.app = app;
    this.admin = admin;
    this.mail = mail;
  }

  /** Starts both, with a business organization. */
  static async start(environment: Readonly<Record<string, string>> = {}): Promise<Inviting> {
    const mail = await MailServer.start();
    const app = await TestApp.start({ SMTP_URL: mail.url, FRONTEND_URL: frontendUrl, ...environment });
    return new Inviting(app, await app.setUp(), mail);
  }

  /** Returns unused addresses. */
  fresh(count: number): string[] {
    return Array.from({ length: count }, () => {
      this.#count += 1;
      return `guest-${this.#count}@example.com`;
    });
  }

  invite(emails: readonly string[], groupIds?: readonly string[], client: Client = this.admin): Promise<TestResponse> {
    return client.post('/users/bulk/invite', { emails, ...(groupIds && { groupIds }) });
  }

  resend(userId: string, client: Client = this.admin): Promise<TestResponse> {
    return client.post(`/users/${userId}/resend-invite`);
  }

  /** Invites a new user; returns the user, and the token of the mail. */
  async invitee(): Promise<{ readonly email: string; readonly userId: string; readonly token: string }> {
    const [email = ''] = this.fresh(1);
    const { status, text } = await this.invite([email]);
    if (status !== 200) throw new Error(`not invited: ${status} ${text}`);
    return { email, userId: await this.idOf(email), token: tokenIn(this.mailTo(email)) };
  }

  /** Invites a new user who then sets the password of tests. */
  async settled(): Promise<{ readonly email: string; readonly userId: string }> {
    const invitee = await this.invitee();
    const { status, text } = await this.use(invitee.token);
    if (status !== 200) throw new Error(`no password: ${status} ${text}`);
    return invitee;
  }

  /** Sets a password with the token of a link. */
  use(token: string, chosen: string = password): Promise<TestResponse> {
    return this.app.with(token).post('/userAccount/password/reset/token', { password: chosen });
  }

  /** Returns the status of a link without using it up: a password that is too short is rejected last. */
  async verdict(token: string): Promise<number> {
    return (await this.use(token, 'short')).status;
  }

  /** Returns the last mail to an address, which has to be there already. */
  mailTo(email: string): ReceivedMail {
    const mail = this.mail.mailsTo(email).at(-1);
    if (!mail) throw new Error(`no mail to ${email}`);
    return mail;
  }

  async list(query = ''): Promise<Json[]> {
    return (await this.admin.get(`/users/invitations${query}`)).body.invitations;
  }

  /** Returns the invitation of one user in the list; `undefined` for none. */
  async listed(email: string): Promise<Json> {
    return (await this.list(`?search=${encodeURIComponent(email)}`)).find((one) => one.email === email);
  }

  async idOf(email: string): Promise<string> {
    const { body } = await this.app.service().get(`/users/email/exists?email=${encodeURIComponent(email)}`);
    return body[0]?._id ?? '';
  }

  async groupsOf(userId: string): Promise<string[]> {
    const { body } = await this.admin.get(`/userGroups/users/${userId}`);
    return body.map(({ name }: Json) => name).sort();
  }

  async newGroup(): Promise<{ readonly id: string; readonly name: string }> {
    this.#count += 1;
    const { body } = await this.admin.post('/userGroups', { name: `group-${this.#count}`, type: 'custom' });
    return { id: body._id, name: body.name };
  }

  /** Writes into the store by hand. */
  write(sql: string, ...values: readonly unknown[]): void {
    const store = secondConnection(this.app);
    try {
      store.prepare(sql).run(...values);
    } finally {
      store.close();
    }
  }

  /** Sets whether the organization's users sign in by password. */
  signInByPassword(isSo: boolean): void {
    const allowedMethods = isSo ? [{ type: 'password' }] : [];
    this.write('UPDATE auth_configs SET steps = ?', JSON.stringify([{ order: 1, allowedMethods }]));
  }

  /** Records the number of events and audit records; returns a function that returns the later ones. */
  async mark(): Promise<() => Promise<{ readonly events: readonly Json[]; readonly audit: readonly Json[] }>> {
    const { app } = this;
    const [events, audit] = [(await app.events()).length, (await app.audit()).length];
    return async () => ({ events: (await app.events()).slice(events), audit: (await app.audit()).slice(audit) });
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.mail.stop();
  }
}
