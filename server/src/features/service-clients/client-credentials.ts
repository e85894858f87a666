import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { closestName } from '../../text/closest.ts';

/** Characters of an unknown name that an error repeats. */
const nameMax = 100;

/** Client credentials that OAuth endpoints accept in the body (RFC 6749, section 2.3.1). */
export const clientCredentials = {
  client_id: z
    .string()
    .max(200)
    .optional()
    .describe('Unless the client is named by HTTP Basic')
    .meta({ examples: ['0123456789abcdef01234567'] }),
  client_secret: z
    .string()
    .max(200)
    .optional()
    .meta({ examples: ['lks_secret-of-the-client'] }),
};

/**
 * The body of an OAuth request. Unknown fields are ignored (RFC 6749, section 3.2), but for those that were probably meant to
 * be a known one: `scopes`, ignored, would give every scope of the client. Rule: SERVICE-20.
 */
export function oauthBody<Shape extends z.ZodRawShape>(shape: Shape) {
  const known = Object.keys(shape);
  return z.looseObject(shape).superRefine((given, context) => {
    for (const name of Object.keys(given)) {
      const meant = known.includes(name) ? null : closestName(name, known);
      const message = `is not a known field: did you mean ${meant}?`;
      if (meant !== null) context.addIssue({ code: 'custom', path: [name.slice(0, nameMax)], message });
    }
  });
}

/** A token that a client asks about or ends (RFC 7662, section 2.1; RFC 7009, section 2.1). */
export const tokenBody = oauthBody({
  ...clientCredentials,
  token: z
    .string()
    .min(1)
    .max(10_000)
    .meta({ examples: ['eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl'] }),
  token_type_hint: z
    .string()
    .max(100)
    .optional()
    .meta({ examples: ['access_token'] }),
});

/** The header of a client that proves itself by HTTP Basic. */
export const clientHeaders = z.object({ authorization: z.string().max(2_000).optional() });

const basicForm = /^basic +([A-Za-z0-9+/=]+)$/i;

const challenge = { 'www-authenticate': 'Basic realm="latchkey"' };

/** Returns the error for a client that is unknown, has ended, or did not prove itself. */
export function refuseClient(): ApiError {
  return new ApiError('clientInvalid', { headers: challenge });
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw refuseClient();
  }
}

/** Returns id and secret that a client presents. Throws for one that presents them twice, or not at all. */
export function readCredentials(
  authorization: string | undefined,
  body: { readonly client_id?: string | undefined; readonly client_secret?: string | undefined },
): { readonly id: string; readonly secret: string } {
  if (authorization === undefined) return { id: body.client_id ?? '', secret: body.client_secret ?? '' };
  if (body.client_secret !== undefined) throw new ApiError('clientNamedTwice');
  // Rule: FIT-101.
  if (/^bearer\b/i.test(authorization)) throw new ApiError('clientNeedsSecret', { headers: challenge });
  const decoded = Buffer.from(basicForm.exec(authorization)?.[1] ?? '', 'base64').toString();
  const colon = decoded.indexOf(':');
  if (colon < 0) throw refuseClient();
  const id = formDecoded(decoded.slice(0, colon));
  const named = body.client_id ?? id;
  if (named.toLowerCase() !== id.toLowerCase()) throw new ApiError('clientNamedTwice');
  return { id, secret: formDecoded(decoded.slice(colon + 1)) };
}
