import { describe, expect, it } from 'vitest';
import { misspeltVariables } from './misspelt.ts';

describe('misspeltVariables', () => {
  it('finds names that are almost those of this service (FIT-105)', () => {
    const given = { SMPT_URL: 'x', CORS_ORIGIN: 'x', DATABASE_URI: 'x', LATCHKEY_PORT: '1', JWT_SECRETS_FILE: 'x' };
    expect(misspeltVariables(given)).toEqual([
      { given: 'CORS_ORIGIN', meant: 'CORS_ORIGINS' },
      { given: 'DATABASE_URI', meant: 'DATABASE_URL' },
      { given: 'JWT_SECRETS_FILE', meant: 'JWT_SECRET_FILE' },
      { given: 'LATCHKEY_PORT', meant: 'PORT' },
      { given: 'SMPT_URL', meant: 'SMTP_URL' },
    ]);
  });

  it('leaves names of other programs alone, and those of variables that are set (FIT-105)', () => {
    const names = [
      'HOME',
      'PATH',
      'HOSTNAME',
      'HOSTTYPE',
      'LANG',
      'TERM',
      'SHLVL',
      'LOGNAME',
      'NODE_ENV',
      'NODE_OPTIONS',
    ];
    const more = ['SSH_TTY', 'DBUS_SESSION_BUS_ADDRESS', 'XDG_DATA_DIRS', 'LOG_FILE', 'PGPORT', 'SMTP_HOST', 'DB_URL'];
    const known = ['SMTP_URL', 'SMTP_URL_FILE', 'CONFIG_FILE', 'SCOPES_FILE', 'UV_THREADPOOL_SIZE', 'LATCHKEY_TOKEN'];
    const environment = Object.fromEntries([...names, ...more, ...known, 'SMPT_URL'].map((name) => [name, 'x']));
    expect(misspeltVariables(environment)).toEqual([]);
  });
});
