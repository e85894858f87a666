import { TestApp } from './test-app.ts';

const email = 'ada@example.com';

const stored = {
  host: 'smtp.example.com',
  port: 2525,
  security: 'starttls',
  username: 'mailer',
  password: 'Stored-Pass-4711',
  from: 'Stored <stored@example.com>',
};

/** Parses stored settings as a service does. */
export const asStored = {
  host: 'smtp.example.com',
  port: 2525,
  security: 'starttls',
  login: ['mailer', 'Stored-Pass-4711'],
  from: { name: 'Stored', address: 'stored@example.com' },
};

/** Returns the mail server, its password in clear; `null` where it is not configured. */
export async function settingsOf(app: TestApp) {
  const settings = await app.services.mail.settings();
  if (!settings) return null;
  const { login, outboundNetworks: _, ...rest } = settings;
  return { ...rest, login: login && [login.username, login.password.expose()] };
}

/** A service whose administrator has stored where mail goes out. */
export class StoredMail {
  app: TestApp;

  private constructor(app: TestApp) {
    this.app = app;
  }

  static async start(): Promise<StoredMail> {
    const app = await TestApp.start();
    app.keepSecret(stored.password);
    const admin = await app.setUp();
    const { status, text } = await admin.put('/settings/smtp', stored);
    if (status !== 200) throw new Error(`nothing is stored: ${status} ${text}`);
    return new StoredMail(app);
  }

  async startAgain(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    const { dataDir, clock } = this.app;
    await this.app.stop();
    this.app = await TestApp.start({ ...environment, DATA_DIR: dataDir }, clock);
    this.app.keepSecret(stored.password);
  }

  settings() {
    return settingsOf(this.app);
  }

  /** Returns the response for an administrator. */
  async told(): Promise<unknown> {
    return (await (await this.app.signIn(email)).get('/settings/smtp')).body;
  }
}
