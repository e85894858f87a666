import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { components } from '../../http/schemas.ts';

const jwk = z.object({
  kty: z.string(),
  crv: z.string(),
  x: z.string(),
  kid: z.string(),
  alg: z.string(),
  use: z.string(),
});
components.add(jwk, { id: 'JsonWebKey' });

/** Rules: AUTH-35, AUTH-59. */
export const getJwks = endpoint({
  method: 'GET',
  path: '/.well-known/jwks.json',
  root: true,
  tag: 'Keys',
  summary: 'Get the public keys that tokens are signed with (RFC 7517)',
  policy: { who: 'anyone' },
  response: { 200: z.object({ keys: z.array(jwk) }) },
  async handle({ keys }) {
    return { keys: [...(await keys.publicKeys())] };
  },
});
