// Verifies Latchkey's tokens as another service does: by the published keys, or by the shared secret.
import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';

const fetchMsMax = 5_000;

function partOf(text) {
  const part = JSON.parse(Buffer.from(text, 'base64url').toString());
  if (typeof part !== 'object' || part === null) throw new Error('no object');
  return part;
}

/** Checks Ed25519 signatures with the keys at an address, which are read again when a token names an unknown one. */
function checkByKeys(jwksUrl) {
  let keys = new Map();
  const read = async () => {
    const answer = await fetch(typeof jwksUrl === 'function' ? jwksUrl() : jwksUrl, {
      signal: AbortSignal.timeout(fetchMsMax),
      redirect: 'error',
    });
    const { keys: published } = await answer.json();
    const usable = published.filter(({ kty, crv }) => kty === 'OKP' && crv === 'Ed25519');
    keys = new Map(usable.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]));
  };
  return async ({ alg, kid }, signed, signature) => {
    // The algorithm is ours to choose: a token that names another one is not ours.
    if (alg !== 'EdDSA') return false;
    if (!keys.has(kid)) await read();
    const key = keys.get(kid);
    return key !== undefined && verify(null, signed, key, signature);
  };
}

function checkBySecret(secret) {
  return async ({ alg }, signed, signature) => {
    if (alg !== 'HS256') return false;
    const right = createHmac('sha256', secret).update(signed).digest();
    return signature.length === right.length && timingSafeEqual(signature, right);
  };
}

/**
 * What answers the claims of an Authorization header, or `null` where it holds no good token.
 * @param {{ jwksUrl?: string | (() => string), secret?: string, now: () => number }} how
 */
export function tokenVerifier({ jwksUrl, secret, now }) {
  const check = secret === undefined ? checkByKeys(jwksUrl) : checkBySecret(secret);
  return async (authorization) => {
    const [, head, body, signature] = /^Bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(authorization ?? '') ?? [];
    if (head === undefined) return null;
    try {
      const signed = Buffer.from(`${head}.${body}`);
      if (!(await check(partOf(head), signed, Buffer.from(signature, 'base64url')))) return null;
      const claims = partOf(body);
      const isOver = claims.exp !== undefined && !(claims.exp * 1_000 > now());
      const isOurs = typeof claims.userId === 'string' && typeof claims.orgId === 'string';
      return isOurs && !isOver ? claims : null;
    } catch {
      return null;
    }
  };
}
