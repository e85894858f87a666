import { z } from 'zod';
import { unauthorized } from '../../access/bearer.ts';
import { givenPassword, newPassword } from '../../access/password-rules.ts';
import type { SessionPrincipal } from '../../access/principal.ts';
import type { Proof } from '../../access/proof.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { selectActiveOrganization } from '../../db/organization.ts';
import { type Person, selectActivePerson } from '../../db/people.ts';
import { endpoint } from '../../http/endpoint.ts';
import type { Origin } from '../../origin.ts';
import type { Services } from '../../services.ts';
import { endLinks } from '../links/contract.ts';
import { provePassword, requireStrongFor, setPassword } from '../passwords/contract.ts';
import { forgetSignIns, refuseSignIn } from '../sign-in/contract.ts';
import { keepAccessToken, signAccessToken } from './contract.ts';
import { endSessions } from './session-store.ts';

/** Has the caller prove the password, slowed down like sign-in. Throws what a wrong password does there. Rule: AUTH-43. */
async function requirePassword(
  services: Services,
  { id, email, orgId }: Person,
  { caller, given, origin }: { readonly caller: SessionPrincipal; readonly given: string; readonly origin: Origin },
): Promise<Proof> {
  const { limits, db } = services;
  const { network } = origin;
  // Whoever found a session open must not learn its owner's password by trying.
  const { sessionId } = caller;
  const attempt = await limits.trySignIn({ email, network, isKnown: async () => true, sessionId });
  const proof = await provePassword(services, id, given).catch(async (error) => {
    await attempt.undecided();
    throw error;
  });
  if (!proof) {
    const record = { action: 'password.changed', outcome: 'failure', orgId, actor: caller, subjectId: id } as const;
    const details = { reason: 'wrong-password' };
    await db.transaction((tx) => appendAudit(tx, services, { ...record, origin, details }));
    throw (await attempt.failed()) ?? refuseSignIn();
  }
  await attempt.succeeded();
  return proof;
}

interface Change {
  readonly caller: SessionPrincipal;
  readonly proof: Proof;
  readonly passwordHash: string;
  readonly origin: Origin;
}

/** Puts the new password in place of the one that was proved, and answers a fresh access token of this session. */
async function change(services: Services, { caller, proof, passwordHash, origin }: Change): Promise<string> {
  const { db, clock } = services;
  const { userId, orgId, sessionId } = caller;
  const [person, organization] = [await selectActivePerson(db.read, userId), await selectActiveOrganization(db.read)];
  if (!person || !organization) throw unauthorized.invalid();
  const signed = await signAccessToken(services, { person, accountType: organization.accountType });
  await db.transaction(async (tx) => {
    await services.confirm(tx, caller, 'member');
    if (!(await proof.holds(tx))) throw refuseSignIn();
    const nowMs = clock.now();
    await setPassword(tx, { userId, passwordHash, nowMs });
    await endSessions(tx, { userId, exceptId: sessionId }, { nowMs, reason: 'password-changed' });
    await endLinks(tx, { userId, nowMs, reason: 'password-changed' });
    await forgetSignIns(tx, userId);
    await keepAccessToken(tx, sessionId, signed);
    const changes = { password: { before: '[secret]', after: '[secret]' } };
    const record = { action: 'password.changed', orgId, actor: caller, subjectId: userId, origin, changes } as const;
    await appendAudit(tx, services, record);
  });
  return signed.accessToken;
}

/** Rules: PASSWORD-1 to PASSWORD-3, PASSWORD-10, PASSWORD-20. */
export const changePassword = endpoint({
  method: 'POST',
  path: '/userAccount/password/reset',
  tag: 'Sign-in',
  summary: 'Change one’s own password; the other sessions end, and this one gets a fresh access token',
  policy: { who: 'member', sessionOnly: true },
  costs: 'nothing',
  body: z.object({ currentPassword: givenPassword, newPassword }),
  response: { 200: z.object({ data: z.string(), accessToken: z.string() }) },
  async handle(services, { caller, body, origin }) {
    const { read } = services.db;
    const person = await selectActivePerson(read, caller.userId);
    // Whoever was deleted while the body arrived, or whose organization was, has not given a wrong password.
    if (!person || !(await selectActiveOrganization(read))) throw unauthorized.invalid();
    await requireStrongFor(services, person.id, { field: 'body.newPassword', password: body.newPassword });
    const given = { caller, given: body.currentPassword, origin };
    const proof = await requirePassword(services, person, given);
    const passwordHash = await services.passwords.hash(body.newPassword);
    const accessToken = await change(services, { caller, proof, passwordHash, origin });
    return { data: 'password reset', accessToken };
  },
});
