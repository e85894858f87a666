import type { Principal } from '../../access/principal.ts';
import { ApiError } from '../../base/errors.ts';
import type { Reader } from '../../db/database.ts';
import type { Services } from '../../services.ts';
import { hasAdministratorSignedIn } from '../identities/public.ts';
import { hasPassword } from '../passwords/public.ts';
import { methodsOf, type SignInMethod, type SignInStep } from './steps.ts';

/** How an administrator could sign in today. */
interface Usable {
  readonly methods: ReadonlySet<SignInMethod>;
  /** An administrator has signed in by the present provider. */
  readonly isOidcProved: boolean;
}

function refuseUnusable(wanted: readonly SignInStep[], { methods: can, isOidcProved }: Usable): void {
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

/**
 * Rejects steps that the administrator who sets them could not take, and a step that only single sign-on takes before
 * any administrator has signed in by it: then perhaps no one could. Rules: AUTH-47, FIT-7.
 */
export async function refuseLockOut(
  read: Reader,
  services: Services,
  { steps, ...who }: { readonly steps: readonly SignInStep[]; readonly orgId: string; readonly userId: string },
): Promise<void> {
  refuseUnusable(steps, await usableMethods(services, read, who));
}
