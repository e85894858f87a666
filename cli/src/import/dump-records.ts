import { z } from 'zod';
import { emailAddress } from '../../../server/src/text/email-address.ts';
import { address, optionalMobile, optionalText, plainText } from '../../../server/src/text/plain-text.ts';
import { dumpExpiry, dumpHash, dumpId, dumpTime, optionalDumpId, optionalDumpTime } from './dump-values.ts';

const tokenNameMax = 100;
const reasonMax = 500;
const scopesMax = 500;
const flag = z
  .boolean()
  .nullish()
  .transform((given) => given === true);
const optionalTime = optionalDumpTime.transform((given) => given ?? undefined);
const postalAddress = address.nullish().transform((given) => {
  const isEmpty = !given || Object.values(given).every((part) => part === undefined);
  return isEmpty ? null : given;
});

/** The organization. */
export const organizationDocument = z.object({
  _id: dumpId,
  accountType: z.enum(['individual', 'business'], 'must be individual or business'),
  contactEmail: emailAddress,
  registeredName: optionalText,
  shortName: optionalText,
  phoneNumber: optionalText,
  permanentAddress: postalAddress,
  onBoardingStatus: z.enum(['notConfigured', 'configured', 'skipped']).catch('notConfigured'),
  isDeleted: z.literal([false, null], 'must not be true: the organization is deleted').optional(),
  createdAt: dumpTime,
});

/** A user. Absent fields are not set. */
export const userDocument = z.object({
  _id: dumpId,
  orgId: optionalDumpId,
  fullName: plainText(),
  firstName: optionalText,
  middleName: optionalText,
  lastName: optionalText,
  email: emailAddress,
  mobile: optionalMobile,
  designation: optionalText,
  address: postalAddress,
  hasLoggedIn: flag,
  isDeleted: flag,
  deletedBy: optionalDumpId,
  createdAt: optionalTime,
  updatedAt: optionalTime,
});

/** The password of a user. */
export const credentialsDocument = z.object({
  userId: dumpId,
  orgId: optionalDumpId,
  hashedPassword: z
    .string()
    .regex(/^\$[\w-]+\$/, 'must be a hash that names its kind, such as $argon2id$: a password itself is not taken'),
});

/** A user group with the ids of its members. */
export const groupDocument = z.object({
  _id: dumpId,
  orgId: optionalDumpId,
  name: plainText(),
  type: z.enum(['admin', 'standard', 'everyone', 'custom'], 'must be admin, standard, everyone or custom'),
  users: z
    .array(dumpId)
    .nullish()
    .transform((given) => [...new Set(given ?? [])]),
  isDeleted: flag,
  createdAt: optionalTime,
});

const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/, 'must be the name of a scope');
const scopes = z
  .unknown()
  .transform((given) => (typeof given === 'string' ? given.split(' ').filter(Boolean) : given))
  .pipe(z.array(scope).min(1, 'must name at least one').max(scopesMax, `must name at most ${scopesMax}`))
  .transform((given) => [...new Set(given)]);

/** A personal access token. */
export const tokenDocument = z.object({
  _id: dumpId,
  orgId: optionalDumpId,
  userId: dumpId,
  name: plainText({ max: tokenNameMax }),
  tokenHash: dumpHash,
  scopes,
  createdAt: dumpTime,
  expiresAt: dumpExpiry,
  lastUsedAt: optionalDumpTime,
  parentId: optionalDumpId,
  isRevoked: flag,
  revokedAt: optionalDumpTime,
  revokedBy: optionalDumpId,
  revokeReason: plainText({ min: 0, max: reasonMax })
    .nullish()
    .transform((given) => given ?? ''),
});

/** Under these keys other systems keep tokens themselves. */
const rawKeys = ['token', 'accessToken', 'rawToken', 'value', 'jwt', 'secret'];
const rawToken = /eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+/;

/** The field of a document of a token that holds the token itself; `null` where none does. Rule: CLI-20. */
export function rawTokenField(document: Readonly<Record<string, unknown>>): string | null {
  const isRaw = (key: string, value: unknown) =>
    (rawKeys.includes(key) && typeof value === 'string' && value !== '') || rawToken.test(JSON.stringify(value) ?? '');
  return Object.entries(document).find(([key, value]) => isRaw(key, value))?.[0] ?? null;
}
