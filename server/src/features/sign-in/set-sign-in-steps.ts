import { z } from 'zod';
import type { Principal, SessionPrincipal } from '../../access/principal.ts';
import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import type { Origin } from '../../base/origin.ts';
import { selectAdministratorTargets } from '../../db/members/mail-targets.ts';
import { endpoint } from '../../http/endpoint.ts';
import { signInStepsChangedMail } from '../../mail/notice-emails.ts';
import { sendNotice } from '../../mail/notices.ts';
import type { Services } from '../../services.ts';
import { refuseLockOut } from './step-actions.ts';
import { selectSignInConfig, updateSteps } from './step-store.ts';
import { givenSteps, methodsOf, signInSteps } from './steps.ts';

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

interface Input extends ForCaller<SessionPrincipal> {
  readonly body: z.output<typeof body>;
  readonly origin: Origin;
}

const body = z.strictObject({ authMethod: givenSteps });
const response = { 200: z.object({ message: z.string(), authMethod: signInSteps }) };

/** Sets the steps. Rules: AUTH-46, AUTH-47, FIT-7, LEAVER-10. */
async function set(services: Services, { caller, write, body: { authMethod }, origin }: Input) {
  const { clock } = services;
  const { orgId, userId } = caller;
  await write(async (tx) => {
    // Asked in here: what makes a method usable must not go before the steps that need it are there.
    await refuseLockOut(tx, services, { steps: authMethod, orgId, userId });
    const { steps: before, updatedAt } = await selectSignInConfig(tx, orgId);
    // Twice in a millisecond is two configurations, too.
    const nowMs = Math.max(clock.now(), updatedAt + 1);
    await updateSteps(tx, { orgId, steps: authMethod, by: userId, nowMs });
    const details = { steps: authMethod.map(methodsOf) };
    const changes = changesBetween({ steps: before.map(methodsOf) }, details);
    const record = { action: 'sign-in.steps-set', orgId, actor: caller, subjectId: orgId, origin } as const;
    await appendAudit(tx, services, { ...record, details, changes });
  });
  mailAdministrators(services, caller, { steps: authMethod.map(methodsOf), network: origin.network });
  return { message: 'Sign-in methods updated successfully', authMethod };
}

/** Rules: AUTH-46, AUTH-47, FIT-7. */
export const setSignInSteps = endpoint({
  method: 'POST',
  path: '/orgAuthConfig/updateAuthMethod',
  tag: 'Sign-in',
  summary:
    'Set how the users of the organization sign in; a session that went through less ends when it is next refreshed',
  policy: { who: 'admin', sessionOnly: true },
  body,
  response,
  handle: set,
});

/** Rule: FIT-79. */
export const setUpSignInSteps = endpoint({
  method: 'POST',
  path: '/orgAuthConfig',
  tag: 'Sign-in',
  summary: 'The same as POST /orgAuthConfig/updateAuthMethod, for earlier clients',
  policy: { who: 'admin', sessionOnly: true },
  body,
  response,
  handle: set,
});
