import { EventEmitter, once } from 'node:events';
import { MailServer } from './mail-server.ts';
import { beginSignIn } from './sign-in.ts';
import { type Client, TestApp, type TestResponse } from './test-app.ts';
import type { TestClock } from './test-clock.ts';

type Method = 'password' | 'otp' | 'oidc';
/** A method and what it takes. */
type Proof = readonly [method: string, secret: string];

/** Steps of signing in, each with its methods, as the API takes and answers them. */
export function stepsOf(...steps: readonly (readonly Method[])[]) {
  return steps.map((methods, place) => ({ order: place + 1, allowedMethods: methods.map((type) => ({ type })) }));
}

/** A whole service with a mail server, where users sign in by a password or a code until `setSteps` changes it. */
export class SignInDesk {
  readonly app: TestApp;
  readonly mail: MailServer;
  readonly admin: Client;
  readonly #done = new EventEmitter();
  #underWay = 0;

  private constructor(parts: { app: TestApp; mail: MailServer; admin: Client }) {
    this.app = parts.app;
    this.mail = parts.mail;
    this.admin = parts.admin;
    const { afterResponse } = this.app.services;
    const run = afterResponse.run.bind(afterResponse);
    afterResponse.run = (what, work) => {
      this.#underWay += 1;
      run(what, async () => {
        try {
          await work();
        } finally {
          this.#underWay -= 1;
          this.#done.emit('done');
        }
      });
    };
  }

  static async start(environment: Readonly<Record<string, string>> = {}, clock?: TestClock): Promise<SignInDesk> {
    const mail = await MailServer.start();
    const app = await TestApp.start({ SMTP_URL: mail.url, ...environment }, clock);
    const desk = new SignInDesk({ app, mail, admin: await app.setUp() });
    await desk.setSteps(['password', 'otp']);
    return desk;
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.mail.stop();
  }

  async setSteps(...steps: readonly (readonly Method[])[]): Promise<void> {
    const { status, text } = await this.admin.post('/orgAuthConfig/updateAuthMethod', {
      authMethod: stepsOf(...steps),
    });
    if (status !== 200) throw new Error(`steps not set: ${status} ${text}`);
  }

  /** Waits for all that is done behind requests, mails included. */
  async settled(): Promise<void> {
    while (this.#underWay > 0) await once(this.#done, 'done');
  }

  /** Begins to sign in; answers what the next call has to send back. */
  begin(email?: string): Promise<string> {
    return beginSignIn(this.app, email);
  }

  /** Takes a step of a sign-in that has begun. */
  take(token: string, [method, secret]: Proof, email?: string): Promise<TestResponse> {
    const body = { method, credentials: { [method]: secret }, ...(email === undefined ? {} : { email }) };
    return this.app.anonymous.post('/userAccount/authenticate', body, { headers: { 'x-session-token': token } });
  }

  /** Begins to sign in and takes the first step. */
  async signIn(email: string, method: string, secret: string): Promise<TestResponse> {
    return this.take(await this.begin(email), [method, secret]);
  }

  /** Asks for a code and waits until whatever follows is done. */
  async askForCode(email: string, token?: string): Promise<TestResponse> {
    const headers = token === undefined ? {} : { 'x-session-token': token };
    const response = await this.app.anonymous.post('/userAccount/login/otp/generate', { email }, { headers });
    await this.settled();
    return response;
  }

  /** Asks for a code and reads it in the mailbox that it has to go to. */
  async codeFor(email: string, mailbox: string = email): Promise<string> {
    this.mail.clear();
    await this.askForCode(email);
    return codeIn(await this.mail.mailTo(mailbox));
  }
}

/** The code in a mail: a line of six digits. */
export function codeIn({ text }: { readonly text: string }): string {
  const code = /^\s*(\d{6})\s*$/m.exec(text)?.[1];
  if (code === undefined) throw new Error(`no code in: ${text}`);
  return code;
}

/** A code that is not this one. */
export function otherCode(code: string, by = 1): string {
  return String((Number(code) + by) % 1_000_000).padStart(6, '0');
}
