import { z } from 'zod';
import { givenPassword } from '../../access/password-rules.ts';
import type { Proof } from '../../access/proof.ts';
import type { Origin } from '../../base/origin.ts';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { selectUserByEmail, selectUserById, type User } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { needed } from '../../http/schemas.ts';
import { authProviders } from '../../oidc/oidc.ts';
import type { AllServices, Services } from '../../services.ts';
import { emailAddress } from '../../text/email-address.ts';
import { trySignIn } from '../known-networks/public.ts';
import { openSignIn, readSignIn, recordRejection, type SignInStage } from '../sign-in/public.ts';
import { beginSession, prove } from './public.ts';
import { mailedAndCarried, oneStep, signedIn } from './session.ts';
import { countSignIn, exposePair, signTokenPair } from './session-pair-actions.ts';

const body = z.object({
  method: z
    .string()
    .max(40)
    .describe('One of the allowedMethods that initAuth, or the step before, returned')
    .meta({ examples: ['password'] }),
  credentials: z
    .object({
      password: givenPassword.optional().describe('For the method password'),
      ...mailedAndCarried,
    })
    .describe('The proof, by method'),
  email: emailAddress
    .optional()
    .describe('Of the user who signs in. Required if initAuth was called without it; otherwise the same one, or none'),
});

interface Stage {
  readonly signIn: SignInStage;
  readonly user: User;
  readonly proof: Proof;
  readonly method: SignInStage['methods'][number] | 'none';
  readonly origin: Origin;
}

/** A change meanwhile leaves the proof worthless. */
function refuseLate(services: Services, { user, method, origin }: Stage) {
  return recordRejection(services, { orgId: user.orgId, userId: user.id, method, isLate: true, origin });
}

/** Notes one step of several. Rule: AUTH-8. */
async function continueSignIn(services: AllServices, stage: Stage) {
  const { signIn, user, proof, method } = stage;
  const isDone = await services.db.transaction(
    async (tx) =>
      (await selectUserById(tx, user.id)) !== undefined &&
      (await proof.consume(tx)) &&
      signIn.advance(tx, user.id, method),
  );
  if (!isDone) throw refuseLate(services, stage);
  const { nextStep, nextMethods: allowedMethods } = signIn;
  return {
    status: 'success' as const,
    nextStep,
    allowedMethods,
    authProviders: authProviders(services.config, allowedMethods, signIn.id),
  };
}

/** Begins the session when the last step is done. Rules: AUTH-7, AUTH-11. */
async function finish(services: AllServices, stage: Stage, accountType: string) {
  const { signIn, user, proof, method, origin } = stage;
  const pair = await signTokenPair(services, { user, accountType });
  await services.db.transaction(async (tx) => {
    const isHere = (await selectUserById(tx, user.id)) !== undefined;
    if (!isHere || !(await proof.consume(tx)) || !(await signIn.complete(tx, user.id))) {
      throw refuseLate(services, stage);
    }
    await beginSession(tx, services, { user, pair, methods: signIn.methodsWith(method), origin });
  });
  return { message: 'Fully authenticated', ...exposePair(pair) };
}

/** Rules: AUTH-6 to AUTH-13, AUTH-43, AUTH-44, AUTH-70, FIT-81. */
export const authenticateUser = endpoint({
  method: 'POST',
  path: '/userAccount/authenticate',
  tag: 'Sign-in',
  summary: 'Sign in, or take one of several steps to it',
  policy: { who: 'anyone', writesBy: 'signInProof' },
  boundedBy: 'signIn',
  headers: z.object({
    'x-session-token': needed(
      z.string().describe('The header of this name in the response of initAuth, valid for an hour. Without it: 401'),
    ),
  }),
  body,
  response: { 200: z.union([signedIn, oneStep]) },
  async handle(services, { headers, body, origin }) {
    const begun = await readSignIn(services, headers['x-session-token'], body.email);
    const attempt = await trySignIn(services, { email: begun.email, network: origin.network, method: body.method });
    const organization = await selectActiveOrganization(services.db.read);
    const user = organization && (await selectUserByEmail(services.db.read, organization.id, begun.email));
    const ownerId = user?.id ?? null;
    const signIn = organization && (await openSignIn(services, { ...begun, orgId: organization.id, userId: ownerId }));
    const method = signIn?.methods.find((allowed) => allowed === body.method) ?? ('none' as const);
    const shown = { method, signIn: begun, address: origin.network, ...body.credentials };
    const proof = await prove(services, method === 'none' ? null : ownerId, shown).catch(async (error) => {
      await attempt.undecided();
      throw error;
    });
    if (!organization || !user || !signIn || !proof) {
      services.metrics.countActivity('session.refused');
      const error = recordRejection(services, { orgId: organization?.id ?? null, userId: ownerId, method, origin });
      throw (await attempt.failed()) ?? error;
    }
    if (signIn.isLast) await countSignIn(services, user.id, origin);
    // One step of several earns no more guesses at the next.
    await (signIn.isLast ? attempt.succeeded() : attempt.undecided());
    const stage = { signIn, user, proof, method, origin };
    return signIn.isLast ? finish(services, stage, organization.accountType) : continueSignIn(services, stage);
  },
});
