import { z } from 'zod';
import type { Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import type { Reader } from '../../db/database.ts';
import { selectAdministratorTargets } from '../../db/members/mail-targets.ts';
import { endpoint } from '../../http/endpoint.ts';
import { signInStepsChangedMail } from '../../mail/notice-emails.ts';
import { sendNotice } from '../../mail/notices.ts';
import type { Services } from '../../services.ts';
import { hasAdministratorSignedIn } from '../identities/public.ts';
import { hasPassword } from '../passwords/public.ts';
import { selectSignInConfig, updateSteps } from './step-store.ts';
import { givenSteps, methodsOf, type SignInMethod, type SignInStep, signInSteps } from './steps.ts';

/** How an administrator could sign in today. */
interface Usable {
  readonly methods: ReadonlySet<SignInMethod>;
  /** An administrator has signed in by the present provider. */
  readonly isOidcProved: boolean;
}

/**
 * Rejects steps that the administrator who sets them could not take, and a step that only single sign-on takes before
 * any administrator has signed in by it: then perhaps no one could. Rules: AUTH-47, FIT-7.
 */
function refuseLockOut(wanted: readonly SignInStep[], { methods: can, isOidcProved }: Usable): void {
  for (const step of wanted) {
    const methods = methodsOf(step);
    const usable = methods.filter((method) => can.has(method));
    if (usable.length === 0) {
      throw new ApiError('signInLocksOut', { params: { step: step.order, methods: methods.join(' or ') } });
    }
    if (!isOidcProved && usable.every((method) => method === 'oidc')) {
      throw new ApiError('signOnNotProved', { params: { step: step.order } });
    }
  }
}

async function usableMethods(
  { mail, oidc }: Services,
  read: Reader,
  { orgId, userId }: Pick<Principal, 'orgId'> & { readonly userId: string },
): Promise<Usable> {
  const methods = new Set<SignInMethod>();
  if (await hasPassword(read, userId)) methods.add('password');
  if (await mail.settings()) methods.add('otp');
  const settings = (await oidc.client())?.settings;
  if (settings) methods.add('oidc');
  return {
    methods,
    isOidcProved: settings !== undefined && (await hasAdministratorSignedIn(read, orgId, { settings })),
  };
}

const noticesMax = 100;

/** Mails the administrators that the steps were changed. Rule: SESSION-11. */
function mailAdministrators(
  services: Services,
  { orgId }: Principal,
  { steps, network }: { readonly steps: readonly (readonly string[])[]; readonly network: string },
): void {
  const at = services.clock.now();
  sendNotice(services, 'sign-in steps changed', {
    to: (read) => selectAdministratorTargets(read, orgId, noticesMax),
    email: (reader) => signInStepsChangedMail(reader, { at, network, steps }),
  });
}

/** Rules: AUTH-46, AUTH-47, FIT-7. */
export const setSignInSteps = endpoint({
  method: 'POST',
  path: '/orgAuthConfig/updateAuthMethod',
  tag: 'Sign-in',
  summary:
    'Set how the users of the organization sign in; a session that went through less ends when it is next refreshed',
  policy: { who: 'admin', sessionOnly: true },
  body: z.strictObject({ authMethod: givenSteps }),
  response: { 200: z.object({ message: z.string(), authMethod: signInSteps }) },
  async handle(services, { caller, write, body: { authMethod }, origin }) {
    const { clock } = services;
    const { orgId, userId } = caller;
    await write(async (tx) => {
      // Asked in here: what makes a method usable must not go before the steps that need it are there.
      refuseLockOut(authMethod, await usableMethods(services, tx, { orgId, userId }));
      const { steps: before, updatedAt } = await selectSignInConfig(tx, orgId);
      // Twice in a millisecond is two configurations, too.
      await updateSteps(tx, { orgId, steps: authMethod, nowMs: Math.max(clock.now(), updatedAt + 1) });
      const details = { steps: authMethod.map(methodsOf) };
      const changes = changesBetween({ steps: before.map(methodsOf) }, details);
      const record = { action: 'sign-in.steps-set', orgId, actor: caller, subjectId: orgId, origin } as const;
      await appendAudit(tx, services, { ...record, details, changes });
    });
    mailAdministrators(services, caller, { steps: authMethod.map(methodsOf), network: origin.network });
    return { message: 'Sign-in methods updated successfully', authMethod };
  },
});
