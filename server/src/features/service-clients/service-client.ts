import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { hour, toTimestamp } from '../../base/clock.ts';
import { Secret } from '../../base/secret.ts';
import { components, idResponse, timestamp } from '../../http/schemas.ts';
import { plainText } from '../../text/plain-text.ts';

/** Lifetime of a token of a service. Rule: SERVICE-12. */
export const serviceTokenMs = hour;
/** Time for which ended ones are kept, so that they are distinguished from invented ones. */
export const endedServiceTokenKeptMs = 24 * hour;

/** A scope of services. Rule: SERVICE-13. */
const serviceScopes = ['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ', 'TOKEN_INTROSPECT'] as const;

/** Second spellings that services use. Rule: SERVICE-13. */
const spellings: ReadonlyMap<string, string> = new Map([
  ['user:lookup', 'USER_LOOKUP'],
  ['fetch:config', 'FETCH_CONFIG'],
]);

/** A scope in its first spelling. */
function firstSpelling(name: string): string {
  return spellings.get(name) ?? name;
}

const scope = z.preprocess(
  (given) => (typeof given === 'string' ? firstSpelling(given) : given),
  z.enum(serviceScopes),
);

/** Name and scopes of a new service client. Rules: SERVICE-7, SERVICE-8. */
export const clientInput = z.strictObject({
  name: plainText({ max: 100 }).meta({ examples: ['connector'] }),
  scopes: z
    .array(scope)
    .min(1)
    .transform((given) => [...new Set(given)])
    .meta({ items: { type: 'string', enum: [...serviceScopes] }, examples: [['USER_LOOKUP']] }),
});

/** Creates a client secret of 256 random bits with a recognizable prefix. */
export function createRawClientSecret(): Secret {
  return new Secret(`lks_${randomBytes(32).toString('base64url')}`);
}

/** A service client as it goes out, without its secret. Rule: SERVICE-9. */
export const clientRecord = z.object({
  clientId: idResponse,
  name: z.string(),
  scopes: z.array(z.string()),
  createdAt: timestamp,
  lastUsedAt: timestamp.nullable().describe('When it last got a token'),
  createdBy: idResponse.nullable().describe('The user who created it; null: the operator'),
  creatorIsAdministrator: z
    .boolean()
    .nullable()
    .describe(
      'false: the user who created it, or got its present secret, is no administrator any more; null: the operator created it',
    ),
  earlierSecretUntil: timestamp.nullable().describe('Until when the secret before the present one counts too'),
});
components.add(clientRecord, { id: 'ServiceClient' });

/** A service client as the store has it. */
export interface StoredClient {
  readonly id: string;
  readonly name: string;
  /** Space-separated. */
  readonly scopes: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly createdBy: string | null;
  /** Of who made it and who got its present secret; `null`: the operator. */
  readonly areMakersAdministrators: 0 | 1 | null;
  readonly earlierSecretUntil: number | null;
}

/** A service client as it goes out. Rules: LEAVER-5, SERVICE-9. */
export function toClientRecord(
  { id, name, scopes, createdAt, lastUsedAt, createdBy, areMakersAdministrators, earlierSecretUntil }: StoredClient,
  nowMs: number,
): z.output<typeof clientRecord> {
  const isRotating = earlierSecretUntil !== null && nowMs < earlierSecretUntil;
  return {
    clientId: id,
    name,
    scopes: scopes.split(' '),
    createdAt: toTimestamp(createdAt),
    lastUsedAt: lastUsedAt === null ? null : toTimestamp(lastUsedAt),
    createdBy,
    creatorIsAdministrator: areMakersAdministrators === null ? null : areMakersAdministrators === 1,
    earlierSecretUntil: isRotating ? toTimestamp(earlierSecretUntil) : null,
  };
}

const graceSecondsMax = 86_400;

/** Options of a rotation; other keys are rejected. Rule: LEAVER-8. */
export const rotation = z
  .strictObject({
    graceSeconds: z
      .int()
      .min(0)
      .max(graceSecondsMax)
      .optional()
      .describe(
        'Seconds that the earlier secret, and the tokens that it got, stay valid; 0 or absent: they end at once',
      )
      .meta({ examples: [3_600] }),
  })
  .optional();

/** The scopes that a token is to have: those asked for, or all of the client's; `null` where it asks for others, or names none. Rule: SERVICE-20. */
export function grantedScopes(asked: string | undefined, allowed: readonly string[]): readonly string[] | null {
  if (asked === undefined) return allowed;
  const names = asked
    .split(' ')
    .filter((name) => name !== '')
    .map(firstSpelling);
  return names.length > 0 && names.every((name) => allowed.includes(name)) ? [...new Set(names)] : null;
}
