import { z } from 'zod';
import { givenPassword } from '../../access/password-rules.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { selectActiveOrganization } from '../../db/organization.ts';
import { type Person, selectActivePersonByEmail } from '../../db/people.ts';
import { RefusedError, refuseInput } from '../../errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { needed } from '../../http/schemas.ts';
import type { Origin } from '../../origin.ts';
import type { Services } from '../../services.ts';
import { emailAddress } from '../../text/email-address.ts';
import { keepTokenPair, refuseSignIn, signTokenPair } from './contract.ts';
import { insertSession } from './session-store.ts';
import { selectPasswordHash, selectSteps, updateHasLoggedIn } from './sign-in-store.ts';

const body = z.object({
  method: z
    .string()
    .max(40)
    .describe('One of the allowedMethods that initAuth answered')
    .meta({ examples: ['password'] }),
  credentials: z
    .object({ password: needed(givenPassword) })
    .describe('What proves who signs in: for the method password, the password'),
  email: emailAddress
    .optional()
    .describe(
      'The address of whoever signs in. Required if initAuth was called without it; otherwise the same one, or none',
    ),
});
type Body = z.output<typeof body>;

/** The address that this sign-in is for, which cannot change once it was named. Rule: AUTH-10. */
async function signInEmail({ keys }: Services, token: string | undefined, given: string | undefined): Promise<string> {
  const claims = token === undefined ? null : await keys.unseal(token);
  if (claims?.['tokenType'] !== 'sign-in') {
    throw new RefusedError('signInNotStarted', { headers: { 'www-authenticate': 'Bearer realm="latchkey"' } });
  }
  const begunWith = claims['email'];
  if (typeof begunWith !== 'string') {
    if (given === undefined) throw refuseInput({ field: 'body.email', message: 'is required' });
    return given;
  }
  if (given !== undefined && given !== begunWith) throw refuseSignIn();
  return begunWith;
}

interface Proved {
  readonly person: Person;
  readonly passwordHash: string;
  readonly accountType: string;
}

/**
 * Whoever this address and password belong to; `null` for every way of being wrong, all in the same time.
 * Rule: AUTH-9.
 */
async function prove(services: Services, email: string, { method, credentials }: Body): Promise<Proved | null> {
  const { db, passwords } = services;
  const organization = await selectActiveOrganization(db.read);
  const person = organization ? await selectActivePersonByEmail(db.read, organization.id, email) : null;
  const stored = person ? await selectPasswordHash(db.read, person.id) : null;
  const isRight = await passwords.matches(stored, credentials.password ?? '');
  if (!organization || !person || stored === null || !isRight) return null;
  const [step, ...further] = await selectSteps(db.read, organization.id);
  // Somebody who has proved one step of several is not signed in.
  const isAllowed = further.length === 0 && step?.allowedMethods.some(({ type }) => type === method);
  return isAllowed ? { person, passwordHash: stored, accountType: organization.accountType } : null;
}

/** Begins a session for somebody who proved who they are. Rules: AUTH-7, AUTH-11. */
async function startSession(services: Services, { person, passwordHash, accountType }: Proved, origin: Origin) {
  const { db, newId, clock } = services;
  const { id: userId, orgId } = person;
  const sessionId = newId();
  const pair = await signTokenPair(services, person, accountType);
  await db.transaction(async (tx) => {
    // Whoever was deleted meanwhile, and perhaps restored, no longer has the password that was proved.
    if ((await selectPasswordHash(tx, userId)) !== passwordHash) throw refuseSignIn();
    await insertSession(tx, { id: sessionId, org_id: orgId, user_id: userId, created_at: clock.now() });
    await keepTokenPair(tx, sessionId, pair);
    await updateHasLoggedIn(tx, userId, clock.now());
    const record = { action: 'session.started', orgId, actor: { userId }, subjectId: sessionId, origin } as const;
    await appendAudit(tx, services, record);
  });
  return pair;
}

/** Rules: AUTH-6, AUTH-7, AUTH-9 to AUTH-13, AUTH-43, AUTH-44. */
export const authenticateUser = endpoint({
  method: 'POST',
  path: '/userAccount/authenticate',
  tag: 'Sign-in',
  summary: 'Sign in',
  policy: { who: 'anyone' },
  headers: z.object({
    'x-session-token': needed(
      z.string().describe('The header of this name in the answer of initAuth, good for an hour. Without it: 401'),
    ),
  }),
  body,
  response: { 200: z.object({ message: z.string(), accessToken: z.string(), refreshToken: z.string() }) },
  async handle(services, { headers, body, origin }) {
    const { limits, metrics } = services;
    const email = await signInEmail(services, headers['x-session-token'], body.email);
    limits.trySignIn(email, origin.network);
    const proved = await prove(services, email, body).catch((error) => {
      limits.signInUndecided(email, origin.network);
      throw error;
    });
    if (!proved) {
      metrics.countActivity('session.refused');
      throw refuseSignIn();
    }
    limits.signInSucceeded(email, origin.network);
    const { accessToken, refreshToken } = await startSession(services, proved, origin);
    return { message: 'Fully authenticated', accessToken, refreshToken };
  },
});
