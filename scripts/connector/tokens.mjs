// Verifies Latchkey's tokens as another service does: by the published keys, or by the shared secret.
import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto';

const fetchMsMax = 5_000;

/** @typedef {{ alg?: unknown, kid?: string }} Head of a token */

function partOf(/** @type {string} */ text) {
  const part = JSON.parse(Buffer.from(text, 'base64url').toString());
  if (typeof part !== 'object' || part === null) throw new Error('no object');
  return part;
}

/** Checks Ed25519 signatures with the keys at an address, which are read again when a token names an unknown one. */
function checkByKeys(/** @type {string | (() => string) | undefined} */ jwksUrl) {
  /** @type {Map<unknown, import('node:crypto').KeyObject>} */
  let keys = new Map();
  const read = async () => {
    const url = typeof jwksUrl === 'function' ? jwksUrl() : jwksUrl;
    const answer = await fetch(url ?? '', {
      signal: AbortSignal.timeout(fetchMsMax),
      redirect: 'error',
    });
    const { keys: published } = Object(await answer.json());
    const usable = published.filter(
      (/** @type {import('node:crypto').JsonWebKey} */ { kty, crv }) => kty === 'OKP' && crv === 'Ed25519',
    );
    keys = new Map(usable.map((/** @type {any} */ jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]));
  };
  return async (/** @type {Head} */ { alg, kid }, /** @type {Buffer} */ signed, /** @type {Buffer} */ signature) => {
    // The algorithm is ours to choose: a token that names another one is not ours.
    if (alg !== 'EdDSA') return false;
    if (!keys.has(kid)) await read();
    const key = keys.get(kid);
    return key !== undefined && verify(null, signed, key, signature);
  };
}

function checkBySecret(/** @type {string} */ secret) {
  return async (/** @type {Head} */ { alg }, /** @type {Buffer} */ signed, /** @type {Buffer} */ signature) => {
    if (alg !== 'HS256') return false;
    const right = createHmac('sha256', secret).update(signed).digest();
    return signature.length === right.length && timingSafeEqual(signature, right);
  };
}

/**
 * What answers the claims of an Authorization header, or `null` where it holds no good token.
 * @param {{ jwksUrl: string | (() => string) | undefined, secret: string | undefined, now: () => number }} how
 */
export function tokenVerifier({ jwksUrl, secret, now }) {
  const check = secret === undefined ? checkByKeys(jwksUrl) : checkBySecret(secret);
  return async (/** @type {string | undefined} */ authorization) => {
    const [, head, body = '', signature = ''] = /^Bearer ([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(authorization ?? '') ?? [];
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
