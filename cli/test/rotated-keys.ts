import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TestApp } from '../../server/test/support/test-app.ts';

/** The mail settings that are stored, encrypted. */
export const smtp = {
  host: 'smtp.example.com',
  from: 'no-reply@example.com',
  username: 'ada',
  password: 'mail-4711-secret',
};

/** The encryption key of a data directory. */
export const keyText = (dataDir: string) => readFileSync(join(dataDir, 'encryption-key'), 'utf8').trim();
/** The names of its signing keys, the newest first. */
export const kids = (dataDir: string): string[] =>
  JSON.parse(readFileSync(join(dataDir, 'signing-keys.json'), 'utf8')).keys.map(({ kid }: { kid: string }) => kid);

/** Leaves a store in which the mail settings are encrypted; nothing runs on it. */
export async function leaveStore(dataDir: string): Promise<{ readonly token: string }> {
  const app = await TestApp.start({ DATA_DIR: dataDir, DATABASE_URL: '' });
  const admin = await app.setUp();
  const { status, text } = await admin.put('/settings/smtp', smtp);
  if (status !== 200) throw new Error(`not stored: ${status} ${text}`);
  const { credential } = await admin.token({ expiryDays: 'never' });
  await app.stop();
  return { token: credential ?? '' };
}

/** Starts the service on a store, and returns whether it reads the mail settings and accepts a token. */
export async function startOn(dataDir: string, token: string, environment: Readonly<Record<string, string>> = {}) {
  const app = await TestApp.start({ DATA_DIR: dataDir, DATABASE_URL: '', ...environment });
  try {
    const settings = await app.services.mail.settings();
    const jwks = await app.anonymous.get('//.well-known/jwks.json');
    return {
      mailPassword: settings?.login?.password.expose() ?? null,
      status: (await app.with(token).get('/org')).status,
      published: jwks.body.keys.length as number,
    };
  } finally {
    await app.stop();
  }
}
