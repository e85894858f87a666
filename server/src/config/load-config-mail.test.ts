import { describe, expect, it } from 'vitest';
import { loadConfig } from './load-config.ts';

const secrets = { SMTP_OAUTH2_CLIENT_SECRET: 'Client-Secret-4711', SMTP_OAUTH2_REFRESH_TOKEN: 'Refresh-Token-4711' };
const oauth2 = {
  SMTP_URL: 'smtp://smtp.example.com:587',
  SMTP_OAUTH2_USER: 'mailer@example.com',
  SMTP_OAUTH2_CLIENT_ID: 'latchkey',
  ...secrets,
  SMTP_OAUTH2_TOKEN_URL: 'https://login.example.com/token',
};

describe('the mail server of the configuration', () => {
  it('gets two connections unless MAIL_CONNECTIONS says otherwise (FIT-21)', () => {
    expect(loadConfig({}).mailConnections).toBe(2);
    expect(loadConfig({ MAIL_CONNECTIONS: '10' }).mailConnections).toBe(10);
    for (const wrong of ['0', '11', 'many']) {
      expect(() => loadConfig({ MAIL_CONNECTIONS: wrong })).toThrow(`MAIL_CONNECTIONS is "${wrong}"`);
    }
  });

  it('signs in by OAuth 2.0, over an encrypted connection (FIT-25)', () => {
    const { mailServer } = loadConfig(oauth2);
    expect(mailServer).toMatchObject({ host: 'smtp.example.com', security: 'starttls', login: null });
    expect(mailServer?.oauth2?.refreshToken.expose()).toBe(secrets.SMTP_OAUTH2_REFRESH_TOKEN);
    expect(JSON.stringify(mailServer)).not.toMatch(/4711/);
    expect(loadConfig({ ...oauth2, SMTP_URL: 'smtps://smtp.example.com' }).mailServer?.security).toBe('tls');
  });

  it.each([
    [{ SMTP_URL: '' }, /^SMTP_URL is not set/],
    [{ SMTP_URL: 'smtp://ada:Pass-4711@smtp.example.com' }, /^SMTP_URL holds a user and a password/],
    [{ SMTP_OAUTH2_USER: '' }, /^SMTP_OAUTH2_USER is not set/],
    [{ SMTP_OAUTH2_REFRESH_TOKEN: '' }, /^SMTP_OAUTH2_REFRESH_TOKEN is not set/],
    [
      { SMTP_OAUTH2_TOKEN_URL: 'http://login.example.com/token' },
      /^SMTP_OAUTH2_TOKEN_URL is .* must be an https address/,
    ],
    [{ SMTP_OAUTH2_CLIENT_SECRET: 'x'.repeat(10_001) }, /^SMTP_OAUTH2_CLIENT_SECRET is \[secret\]/],
  ])('is refused with %j, without a secret (FIT-25)', (given, message) => {
    const load = () => loadConfig({ ...oauth2, ...given });
    expect(load).toThrow(message);
    expect(load).not.toThrow(/4711/);
  });
});
