import { connectionText } from '../../base/connection-error.ts';
import { StartupError } from '../../base/errors.ts';
import { StoreLostError } from '../failures.ts';
import { codeOf } from './postgres-connection.ts';

const anyUser = 'correct user and password in it, or the rules in pg_hba.conf';

/** What to do, by the code of PostgreSQL or of the system. */
const cures: Readonly<Record<string, string>> = {
  '28P01': 'correct user and password in it',
  '28000': anyUser,
  '3D000': 'create the database (createdb), or correct its name in it',
  '42501': 'let this user create tables there (GRANT CREATE ON SCHEMA public TO the user), or make it the owner',
  '25006': 'name the server that takes writes, or all of them',
  '53300': 'raise max_connections, or end other connections',
  '57P03': 'wait until PostgreSQL has started',
  ECONNREFUSED: 'start PostgreSQL there, or correct host and port in it',
  ENOTFOUND: 'correct the host name in it',
  EAI_AGAIN: 'correct the host name in it, or the DNS of this machine',
};

function cureOf(code: string, text: string): string {
  if (/no encryption|SSL off/.test(text)) return 'append ?sslmode=require to it';
  if (/does not support SSL/.test(text)) return 'drop sslmode from it, or turn TLS on at the server';
  if (/certificate is not accepted/.test(text)) {
    return 'append &sslrootcert=FILE with the authority of the certificate, or use sslmode=require, which checks none';
  }
  if (/timeout|cannot be reached/i.test(text)) return 'check host and port in it, and firewalls between';
  return cures[code] ?? 'check that PostgreSQL runs there and accepts this user';
}

/** Where it was to connect, without the password: `db.example.com:5432, user latchkey, database latchkey`. */
function placeOf(addresses: readonly string[]): string {
  const urls = addresses.map((address) => new URL(address));
  const hosts = urls.map(({ host, port }) => (port === '' ? `${host}:5432` : host));
  const { username = '', pathname = '' } = urls[0] ?? {};
  const database = decodeURIComponent(pathname.slice(1));
  const named = [
    ...(username === '' ? [] : [`user ${decodeURIComponent(username)}`]),
    ...(database === '' ? [] : [`database ${database}`]),
  ];
  return [hosts.join(','), ...named].join(', ');
}

/**
 * Says in one line why a database cannot be used: where, in the words of PostgreSQL, and what to do. Rule: FIT-101.
 * @param setting what names the database: DATABASE_URL, or the option of a command
 */
export function connectionProblem(
  error: unknown,
  { addresses, setting }: { readonly addresses: readonly string[]; readonly setting: string },
): StartupError {
  if (error instanceof StartupError) return error;
  const cause = error instanceof StoreLostError && error.cause !== undefined ? error.cause : error;
  const text = connectionText(cause);
  const code = codeOf(cause);
  const shownCode = code === '' || text.includes(code) ? '' : ` (${code})`;
  return new StartupError(
    `${setting} cannot be used (${placeOf(addresses)}): ${text}${shownCode}. To mend it: ${cureOf(code, text)}`,
    { cause: error, variable: 'DATABASE_URL' },
  );
}
