import { z } from 'zod';
import { Secret } from '../../base/secret.ts';

/** A server of a broker. */
export interface BrokerHost {
  readonly host: string;
  readonly port: number;
}

/** Address of a broker, and the login there. */
export interface BrokerAddress {
  readonly kind: 'nats' | 'redis';
  /** Encrypted from the first byte, or not connected. */
  readonly isTls: boolean;
  /** At least one; of Redis exactly one. */
  readonly hosts: readonly BrokerHost[];
  /** `null`: no login, or one by the password alone, which NATS calls a token. */
  readonly username: string | null;
  readonly password: Secret | null;
  /** Of Redis; 0 where the address says none. */
  readonly database: number;
}

const form = /^(nats|tls|redis|rediss):\/\/(?:(.*)@)?([^/?#@]+)(?:\/(\d{0,5}))?$/s;
const usualPort = { nats: 4222, redis: 6379 };

/** Parses a host with or without port; `null` for anything else. */
function readHost(text: string, usual: number): BrokerHost | null {
  if (/[\s\\%,]/.test(text) || !URL.canParse(`http://${text}`)) return null;
  const { hostname } = new URL(`http://${text}`);
  // By hand: the parser takes away a port that is the usual one of its own scheme.
  const port = Number(/:(\d+)$/.exec(text.replace(/^\[.*\]/, ''))?.[1] ?? usual);
  return port === 0 ? null : { host: hostname.replace(/^\[(.*)\]$/, '$1'), port };
}

type Login = Pick<BrokerAddress, 'username' | 'password'>;

/** Parses the login, the part before the @; `null` where it is malformed or incomplete. */
function readLogin(text: string | undefined, kind: BrokerAddress['kind']): Login | null {
  if (text === undefined) return { username: null, password: null };
  const [written = '', ...rest] = text.split(':');
  try {
    const [name, word] = [written, rest.join(':')].map(decodeURIComponent);
    // A single word is a token for NATS; for Redis a name without a password is no login.
    if (!word) return name && kind === 'nats' ? { username: null, password: new Secret(name) } : null;
    return { username: name || null, password: new Secret(word) };
  } catch {
    return null;
  }
}

/** Parses the address of a broker; `null` for anything else. Rule: CONFIG-10. */
export function readBrokerAddress(text: string): BrokerAddress | null {
  const [, scheme, written, places = '', path = ''] = form.exec(text) ?? [];
  if (scheme === undefined) return null;
  const kind = scheme.startsWith('redis') ? 'redis' : 'nats';
  const hosts = places.split(',').map((place) => readHost(place, usualPort[kind]));
  const login = readLogin(written, kind);
  const isTooMuch = kind === 'nats' ? path !== '' : hosts.length > 1;
  if (!login || isTooMuch || hosts.includes(null)) return null;
  return {
    kind,
    isTls: scheme === 'tls' || scheme === 'rediss',
    hosts: hosts.filter((host) => host !== null),
    ...login,
    database: Number(path),
  };
}

/** Returns where a broker is, and as whom it is used, without the password: `nats at db.example.com:4222, user latchkey`. */
export function brokerPlace(url: Secret): string {
  const address = readBrokerAddress(url.expose());
  if (!address) return 'broker';
  const { kind, isTls, hosts, username } = address;
  const places = hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',');
  return `${kind} at ${places}${isTls ? ' over TLS' : ''}${username === null ? '' : `, user ${username}`}`;
}

/** The address of a broker in the configuration. Rule: CONFIG-10. */
export const brokerUrl = z
  .string()
  .refine(
    (text) => readBrokerAddress(text) !== null,
    'must be nats://user:password@host:port, tls://…, redis://user:password@host:port/database or rediss://…, user and password percent-encoded or left out',
  )
  .transform((text) => new Secret(text));
