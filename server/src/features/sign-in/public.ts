import { refuseSignIn } from '../../access/proof.ts';
import { ApiError, refuseInput } from '../../base/errors.ts';
import { idPattern } from '../../base/ids.ts';
import type { Origin } from '../../base/origin.ts';
import { hashCredential, Secret } from '../../base/secret.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { networkOf } from '../../limits/limits.ts';
import type { AllServices, Services } from '../../services.ts';
import { forgetWrongCodes } from '../codes/public.ts';
import {
  advanceProgress,
  deleteOldProgress,
  deleteProgress,
  deleteProgressOf,
  insertSteps,
  selectProgress,
  selectSignInConfig,
  updateSteps,
} from './step-store.ts';
import { coversSteps, defaultSteps, methodsOf, type SignInMethod, signInMs } from './steps.ts';

/** Sets the sign-in steps of a new organization. Rule: ORG-10. */
export async function createSignInSteps(tx: Tx, orgId: string, nowMs: number): Promise<void> {
  await insertSteps(tx, { orgId, steps: defaultSteps, nowMs });
}

/**
 * Resets an organization to signing in with a password alone, as in a new one; returns the methods of each step, before
 * and after. Rule: CLI-11.
 */
export async function resetSignInSteps(tx: Tx, orgId: string, nowMs: number) {
  const { steps, updatedAt } = await selectSignInConfig(tx, orgId);
  await updateSteps(tx, { orgId, steps: defaultSteps, by: null, nowMs: Math.max(nowMs, updatedAt + 1) });
  return { before: steps.map(methodsOf), after: defaultSteps.map(methodsOf) };
}

/** Returns whether an organization uses a sign-in method in any step. */
export async function signsInBy(read: Reader, orgId: string, method: SignInMethod): Promise<boolean> {
  const { steps } = await selectSignInConfig(read, orgId);
  return steps.some((step) => methodsOf(step).includes(method));
}

/**
 * Returns whether a step can be taken by one method only: without it no one can sign in. Rule: AUTH-57.
 * @param lacking methods that cannot be used now anyway
 */
export async function dependsOn(
  read: Reader,
  orgId: string,
  { method, lacking }: { readonly method: SignInMethod; readonly lacking: SignInMethod | null },
): Promise<boolean> {
  const { steps } = await selectSignInConfig(read, orgId);
  return steps
    .map(methodsOf)
    .some((methods) => methods.includes(method) && methods.every((one) => one === method || one === lacking));
}

/**
 * Returns whether a session passed at least the steps that are required today. Of one that an earlier release began, it
 * is only known whether the steps were changed since. Rule: SESSION-6.
 */
export async function meetsSteps(
  read: Reader,
  orgId: string,
  session: { readonly methods: string | null; readonly signedInAtMs: number },
): Promise<boolean> {
  const { steps, updatedAt } = await selectSignInConfig(read, orgId);
  if (session.methods === null) return session.signedInAtMs >= updatedAt;
  return coversSteps(steps, session.methods.split(' '));
}

/** The methods of the first step; those of a new organization where there is none. Rule: AUTH-4. */
export async function firstMethods(read: Reader, orgId: string | undefined): Promise<readonly SignInMethod[]> {
  const steps = orgId === undefined ? defaultSteps : (await selectSignInConfig(read, orgId)).steps;
  return methodsOf(steps[0]);
}

/** A sign-in that was begun. */
interface BegunSignIn {
  readonly id: string;
  /** The id of the row that says which steps were taken. */
  readonly rowId: string;
  readonly email: string;
  /** The random part, of which the store has only the hash; `null`: an earlier release began it. */
  readonly secret: Secret | null;
}

/**
 * The id under which the steps of a sign-in are stored: the hash of its random part, so that no one can go on with a
 * sign-in whose row they read. Sign-ins that an earlier release began have their own id. `null`: neither. Rule: CRED-1.
 */
function rowIdOf({ rnd, jti = '' }: Readonly<Record<string, unknown>> & { readonly jti?: string }): string | null {
  if (typeof rnd === 'string') return hashCredential(rnd);
  // A hash has another form, so that the id of a row is never taken for that of an earlier sign-in.
  return idPattern.test(jti) ? jti : null;
}

/**
 * The sign-in that the header of a request stands for, and the address that it is for, which cannot change once it was
 * named. Throws `signInNotStarted`, `invalidInput` where no address was ever named, and `signInRefused`. Rules: AUTH-3,
 * AUTH-10.
 */
export async function readSignIn(
  { keys }: Services,
  token: string | undefined,
  given: string | undefined,
): Promise<BegunSignIn> {
  const claims = token === undefined ? null : await keys.verifyInternal(token);
  const rowId = claims && rowIdOf(claims);
  if (claims?.['tokenType'] !== 'sign-in' || claims.jti === undefined || !rowId) {
    throw new ApiError('signInNotStarted', { headers: { 'www-authenticate': 'Bearer realm="latchkey"' } });
  }
  const begunWith = claims['email'];
  const email = typeof begunWith === 'string' ? begunWith : given;
  if (email === undefined) throw refuseInput({ field: 'body.email', message: 'is required' });
  if (given !== undefined && given !== email) throw refuseSignIn();
  return { id: claims.jti, rowId, email, secret: secretOf(claims) };
}

function secretOf({ rnd }: Readonly<Record<string, unknown>>): Secret | null {
  return typeof rnd === 'string' ? new Secret(rnd) : null;
}

/**
 * The random part of the sign-in that a header stands for; `null` where it stands for none, or for one of another address.
 * Rule: AUTH-73.
 */
export async function readSignInSecret(
  { keys }: Pick<Services, 'keys'>,
  token: string | undefined,
  email: string,
): Promise<Secret | null> {
  const claims = token === undefined ? null : await keys.verifyInternal(token);
  if (claims?.['tokenType'] !== 'sign-in') return null;
  return (claims['email'] ?? email) === email ? secretOf(claims) : null;
}

/** A sign-in that was rejected. */
interface RejectedSignIn {
  /** `null`: there is none, and nothing is recorded. */
  readonly orgId: string | null;
  /** Owner of the address; `null`: it has none. */
  readonly userId: string | null;
  /** `none`: a method that cannot be used now. */
  readonly method: SignInMethod | 'none';
  /** The proof was right when it was checked, and no longer valid when it was to be used. */
  readonly isLate?: boolean;
  readonly origin: Origin;
}

const wrongProofs = { password: 'wrong-password', otp: 'wrong-code', oidc: 'wrong-ticket', none: 'method-not-allowed' };

function reasonOf({ userId, method, isLate = false }: RejectedSignIn): string {
  if (userId === null) return 'unknown-address';
  return isLate ? 'no-longer-valid' : wrongProofs[method];
}

/**
 * Records a rejected sign-in after the response, whose time so reveals nothing, and returns the error; more than one a
 * second from one network are counted instead. An address without a user is not recorded. Rules: AUDIT-9, AUDIT-17,
 * AUTH-9.
 */
export function recordRejection(services: Services, error: RejectedSignIn): ApiError {
  const { limits, afterResponse, rejectionCounter } = services;
  const { orgId, userId: subjectId, method } = error;
  const { requestId, network } = error.origin;
  if (orgId === null) return refuseSignIn();
  const what = { action: 'sign-in.refused', outcome: 'failure', orgId, actor: null, subjectId } as const;
  const details = { method: method === 'none' ? null : method, reason: reasonOf(error) };
  const record = { ...what, origin: { requestId, network }, details };
  afterResponse.run('record of a rejected sign-in', async () => {
    const ofNetwork = networkOf(network);
    const isOne =
      (await limits.tryCount('refusedSignIn', ofNetwork)) && (await limits.tryCount('refusedSignInOfAll', 'all'));
    if (isOne) await services.recordAttempt(record);
    else rejectionCounter.add({ orgId, network: ofNetwork, requestId });
  });
  return refuseSignIn();
}

/** Progress of a sign-in. */
export interface SignInStage {
  readonly id: string;
  /** The methods of the step that is to be taken. */
  readonly methods: readonly SignInMethod[];
  readonly isLast: boolean;
  /** The methods of the steps before and of this one; `null` where an earlier release took those. */
  readonly methodsWith: (method: string) => readonly string[] | null;
  /** The step after, counted from 0, and its methods. */
  readonly nextStep: number;
  readonly nextMethods: SignInMethod[];
  /** Records that the step was taken; returns whether it was still pending. */
  readonly advance: (tx: Tx, userId: string, method: string) => Promise<boolean>;
  /** Ends the sign-in with its last step; returns whether that was still pending. */
  readonly complete: (tx: Tx, userId: string) => Promise<boolean>;
}

/**
 * Returns the progress of a sign-in. Steps that were taken before the steps were changed, or by another user, don't
 * count. Rules: AUTH-8, AUTH-10.
 * @param id of the sign-in; `userId` `null`: an unknown user, who has taken none
 */
export async function openSignIn(
  { db, clock }: Services,
  {
    id,
    rowId,
    orgId,
    userId,
  }: Pick<BegunSignIn, 'id' | 'rowId'> & { readonly orgId: string; readonly userId: string | null },
): Promise<SignInStage> {
  const { steps, updatedAt } = await selectSignInConfig(db.read, orgId);
  const known = steps.length > 1 ? await selectProgress(db.read, rowId, clock.now()) : undefined;
  const counts = known?.userId === userId && known.configUpdatedAt === updatedAt;
  const stepsDone = counts ? known.stepsDone : 0;
  const nextStep = stepsDone + 1;
  const done = counts ? known.methods : '';
  const methodsWith = (method: string) => (done === null ? null : [...(done === '' ? [] : done.split(' ')), method]);
  // The steps may be changed between this look at them and the transaction.
  const isPresent = async (tx: Tx) => (await selectSignInConfig(tx, orgId)).updatedAt === updatedAt;
  return {
    id,
    methods: methodsOf(steps[stepsDone]),
    isLast: nextStep >= steps.length,
    methodsWith,
    nextStep,
    nextMethods: methodsOf(steps[nextStep]),
    advance: async (tx, owner, method) =>
      (await isPresent(tx)) &&
      advanceProgress(tx, {
        id: rowId,
        user_id: owner,
        steps_done: nextStep,
        config_updated_at: updatedAt,
        expires_at: clock.now() + signInMs,
        methods: methodsWith(method)?.join(' ') ?? null,
      }),
    complete: async (tx, owner) =>
      (await isPresent(tx)) && (stepsDone === 0 || deleteProgress(tx, { id: rowId, userId: owner, stepsDone })),
  };
}

/** Deletes the unfinished sign-ins of a user. */
export async function forgetSignIns(tx: Tx, userId: string): Promise<void> {
  await deleteProgressOf(tx, userId);
}

/** Removes sign-ins that took too long; returns their number. */
export function pruneSignIns({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  return db.transaction((tx) => deleteOldProgress(tx, clock.now()));
}

/**
 * Ends the slow-down of an account: its failed sign-ins, wrong one-time codes and mails from everywhere are forgotten.
 * The transaction writes the codes; the counts of failures and mails are changed beside it. Rules: AUTH-51, AUTH-70,
 * AUTH-71, PASSWORD-8.
 */
export async function clearSlowDown(
  tx: Tx,
  { limits }: Pick<Services, 'limits'>,
  { userId, email }: { readonly userId: string; readonly email: string },
): Promise<void> {
  await forgetWrongCodes(tx, userId);
  await limits.clearSlowDown(email);
  await limits.forgetActs(userId);
}
