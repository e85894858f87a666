import { readFileSync } from 'node:fs';
import { Secret } from '../../../server/src/base/secret.ts';
import { CommandError } from '../failures.ts';
import type { RuntimeContext } from '../runtime-context.ts';

/** Token options of the command line; `null`: absent. */
interface Given {
  readonly token: string | null;
  readonly tokenFile: string | null;
}

/** Form of a token, with or without its display prefix, that a header may contain. */
const tokenForm = /^[\w.~+/=-]+$/;
const lengthMax = 16_384;

function readFile(path: string, source: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    throw new CommandError('usage', `${source} cannot be read: ${path}${code}`, { cause: error });
  }
}

/** The one of two sources that is given, with how it is called; throws when both are. */
function oneOf(plain: string | null, file: string | null, names: readonly [string, string]) {
  if (plain !== null && file !== null) {
    throw new CommandError('usage', `${names[0]} and ${names[1]} are both given: one is enough`);
  }
  if (plain !== null) return { text: plain, source: names[0] };
  return file === null ? null : { text: readFile(file, names[1]), source: names[1] };
}

/** Reads the token from the given text. Errors do not quote it. */
function readToken({ text, source }: { readonly text: string; readonly source: string }): Secret {
  const token = text.trim().replace(/^bearer\s+/i, '');
  if (token === '') throw new CommandError('usage', `${source} holds no token`);
  if (token.length > lengthMax || !tokenForm.test(token)) {
    throw new CommandError('usage', `${source} holds something that is no token: put in the token alone, on one line`);
  }
  return new Secret(token);
}

/**
 * Finds the token: on the command line, in the environment, or by asking at the terminal without showing it. Throws
 * CommandError of kind `usage`, which never quotes the input. Rule: CLI-2.
 */
export async function findToken(
  { token, tokenFile }: Given,
  { environment, askSecret }: RuntimeContext,
): Promise<Secret> {
  const variable = (name: string) => environment[name] || null;
  const found =
    oneOf(token, tokenFile, ['--token', '--token-file']) ??
    oneOf(variable('LATCHKEY_TOKEN'), variable('LATCHKEY_TOKEN_FILE'), ['LATCHKEY_TOKEN', 'LATCHKEY_TOKEN_FILE']);
  if (found) return readToken(found);
  const text = await askSecret('Personal access token: ');
  if (text !== null) return readToken({ text, source: 'The answer' });
  throw new CommandError('usage', 'There is no token: set LATCHKEY_TOKEN or LATCHKEY_TOKEN_FILE, or give --token-file');
}
