import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { toTimestamp } from '../../base/clock.ts';
import type { Origin } from '../../base/origin.ts';
import type { Tx } from '../../db/database.ts';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { selectUserByEmail, type User } from '../../db/members/users.ts';
import { findFirstAdministrator, isInDefaultGroup } from '../../features/groups/public.ts';
import { issueLinks } from '../../features/links/public.ts';
import { resetSignInSteps, signsInBy } from '../../features/sign-in/public.ts';
import type { AllServices, Services } from '../../services.ts';

type OperatorServices = Pick<AllServices, 'db' | 'clock' | 'newId'> & {
  readonly config: Pick<Services['config'], 'frontendUrl'>;
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/** The reason why no link could be made. */
export type RecoveryError = 'noOrganization' | 'noSuchAdministrator' | 'passwordsOff';

/** A way back in. */
export interface Recovery {
  readonly email: string;
  /** Works once; a secret. */
  readonly link: string;
  readonly expiresAt: string | null;
}

async function findAdministrator(tx: Tx, orgId: string, email: string | null): Promise<User | undefined> {
  if (email === null) return findFirstAdministrator(tx, orgId);
  const user = await selectUserByEmail(tx, orgId, email);
  if (!user) return undefined;
  return (await isInDefaultGroup(tx, { orgId, userId: user.id, type: 'admin' })) ? user : undefined;
}

/**
 * Creates a link with which an administrator sets a new password, without any mail: for when no administrator can sign
 * in. Rule: CLI-11.
 * @param wish `email` `null`: the first administrator. `resetSignIn`: from now on all users sign in with a password
 * alone
 */
export function recoverAdministrator(
  services: OperatorServices,
  {
    email,
    resetSignIn,
    origin,
  }: { readonly email: string | null; readonly resetSignIn: boolean; readonly origin: Origin },
): Promise<Recovery | RecoveryError> {
  return services.db.transaction(async (tx) => {
    const organization = await selectActiveOrganization(tx);
    if (!organization) return 'noOrganization';
    const { id: orgId } = organization;
    const user = await findAdministrator(tx, orgId, email);
    if (!user) return 'noSuchAdministrator';
    if (!resetSignIn && !(await signsInBy(tx, orgId, 'password'))) return 'passwordsOff';
    const steps = resetSignIn ? await resetSignInSteps(tx, orgId, services.clock.now()) : null;
    const issuing = { purpose: 'reset', setsPassword: true, createdBy: null, delivery: 'shown' } as const;
    const [link] = await issueLinks(tx, services, { ...issuing, inputs: [{ orgId, userId: user.id }] });
    if (!link) throw new Error('no link was created');
    const record = { action: 'operator.recovery-link', orgId, actor: null, subjectId: user.id, origin } as const;
    const changes = changesBetween({ steps: steps?.before }, { steps: steps?.after });
    await appendAudit(tx, services, { ...record, details: { resetSignIn }, changes });
    const { address, expiresAtMs } = link;
    const expiresAt = expiresAtMs === null ? null : toTimestamp(expiresAtMs);
    return { email: user.email, link: address.expose(), expiresAt };
  });
}
