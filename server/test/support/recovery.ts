import { type MailServer, tokenIn } from './mail-server.ts';
import { TestApp, type TestResponse } from './test-app.ts';

/** A new password in place of the password of tests. */
export const chosen = 'Brand-New-Horse-8';

/** Starts a service whose mail goes to a server of the test. */
export function startWithMail(
  mails: Pick<MailServer, 'url'>,
  environment: Readonly<Record<string, string>> = {},
): Promise<TestApp> {
  return TestApp.start({ SMTP_URL: mails.url, MAIL_FROM: 'no-reply@latchkey.test', ...environment });
}

/** Says that one forgot the password of an address. */
export function forget(app: TestApp, email: string): Promise<TestResponse> {
  return app.anonymous.post('/userAccount/password/forgot', { email });
}

/** A service, and where its mail goes. */
interface RecoveryTest {
  readonly app: TestApp;
  readonly mails: MailServer;
}

/**
 * Has a link mailed, and answers the secret in it.
 * @param mailTo where the mail goes, if not to the address that is named
 */
export async function mailedToken({ app, mails }: RecoveryTest, email: string, mailTo = email): Promise<string> {
  mails.clear();
  const { status, text } = await forget(app, email);
  if (status !== 200) throw new Error(`nothing is mailed: ${status} ${text}`);
  return tokenIn(await mails.mailTo(mailTo));
}

/** Sets a password with the secret of a link. */
export function resetWith(app: TestApp, token: string, password: unknown = chosen): Promise<TestResponse> {
  if (typeof password === 'string' && password.length > 7) app.keepSecret(password);
  return app.with(token).post('/userAccount/password/reset/token', { password });
}

/** Returns whether a password is accepted. */
export async function opens(app: TestApp, email: string, password: string): Promise<boolean> {
  return (await app.signInTokens(email, password)).status === 200;
}

/** The answer to a link that has ended, for 30 days. */
export const gone = {
  status: 410,
  body: {
    message: 'This link was used or replaced, or has expired: ask for a new one',
    error: { code: 'GONE' },
  },
};

/** The answer to what is no link at all. */
export const invalid = { status: 401, body: { error: { code: 'TOKEN_INVALID' } } };

/** The answer to a session that others ended. Rule: ERR-29. */
export const signedOut = {
  status: 401,
  body: { message: 'Session expired, please login again', error: { code: 'SESSION_EXPIRED' } },
};
