import { CommandError } from '../failures.ts';

/** Addresses of an instance. */
export interface InstanceAddress {
  /** Name of the instance in messages: origin and path, without a slash at the end. */
  readonly base: string;
  /** Its MCP endpoint. */
  readonly endpoint: URL;
  /** Address of the public metadata of that endpoint (RFC 9728). */
  readonly metadata: URL;
}

/** Ends that users copy by mistake: the endpoint itself, or the prefix of the API. */
const knownEnds = /\/*(?:\/api\/v1)?(?:\/mcp)?\/*$/;
const loopback = /^(?:localhost|.+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const example = 'such as https://latchkey.example.com';

function parse(given: string): URL {
  const url = URL.canParse(given) ? new URL(given) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new CommandError('usage', `The address of the instance must begin with https://, ${example}`);
  }
  // A message that quotes such an address would disclose the password.
  if (url.username !== '' || url.password !== '') {
    throw new CommandError('usage', 'The address of the instance must hold no user name and no password');
  }
  if (url.search !== '' || url.hash !== '') {
    throw new CommandError('usage', `The address of the instance must hold no ? and no #, ${example}`);
  }
  return url;
}

/**
 * Reads the address of an instance, with or without a slash or `/mcp` at its end.
 * @param isInsecureAllowed whether a token may travel unencrypted to another machine
 * Throws CommandError of kind `usage`. Rules: CLI-2, MCP-15.
 */
export function readAddress(given: string, isInsecureAllowed: boolean): InstanceAddress {
  const url = parse(given.trim());
  const base = `${url.origin}${url.pathname.replace(knownEnds, '')}`;
  if (url.protocol === 'http:' && !loopback.test(url.hostname) && !isInsecureAllowed) {
    throw new CommandError(
      'usage',
      `The token would be sent to ${base} unencrypted: use https, or --insecure to allow it`,
    );
  }
  return {
    base,
    endpoint: new URL(`${base}/mcp`),
    metadata: new URL(`${base}/.well-known/oauth-protected-resource/mcp`),
  };
}
