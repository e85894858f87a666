import { createHmac } from 'node:crypto';

/** The claims, or the header, of a compact JWT. */
export type JwtPart = Readonly<Record<string, unknown>>;

/** A compact JWT without the display prefix before it. */
export function bareJwt(token: string): string {
  return token.replace(/^[\w-]+_(?=eyJ)/, '');
}

function partOf(token: string, place: number): JwtPart {
  const part = bareJwt(token).split('.')[place] ?? '';
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as JwtPart;
}

/** The claims of a token, unverified. */
export function claimsOf(token: string): JwtPart {
  return partOf(token, 1);
}

/** The header of a token, unverified. */
export function headerOf(token: string): JwtPart {
  return partOf(token, 0);
}

/** Signs what stands before the second dot. */
export type Signer = (signed: string) => string;

/** Signs as HS256 does, with whatever key. */
export function hmac(key: string | Uint8Array): Signer {
  return (signed) => createHmac('sha256', key).update(signed).digest('base64url');
}

/** A compact JWT of any header and claims, whether they make sense or not. */
export function compactJwt(header: JwtPart, claims: JwtPart, sign: Signer): string {
  const encoded = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  const signed = encoded.join('.');
  return `${signed}.${sign(signed)}`;
}
