import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { refuseInput } from '../../base/errors.ts';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passOperation } from '../../connector/connector-responses.ts';
import { endpoint } from '../../http/endpoint.ts';
import { requireKnownKeys } from '../../http/known-keys.ts';
import { clearableText } from '../../text/plain-text.ts';
import { insertMembers, selectActiveIds, selectMembers } from './member-store.ts';
import { requireRight, succeeded, teamResponse, toMemberRows, toTeamRecord } from './team.ts';
import { searchKeys } from './team-change.ts';
import { givenMembers, namedMembers, requireAllKnown, teamName, withCreator } from './team-input.ts';
import { ownLists } from './team-list-actions.ts';
import { insertTeam, selectTeam } from './team-store.ts';

// Loose: a backend may know more fields, and gets the whole body.
const body = z.looseObject({
  name: teamName,
  description: clearableText.meta({ examples: ['Finds things out'] }).optional(),
  members: namedMembers.optional().describe('The caller need not be named'),
  userRoles: givenMembers.optional().describe('The same as members, as earlier clients have it'),
});

/** Returns the members that a body names, and in which field. Throws `invalidInput` where it names them in two. */
function namedIn({ members, ...given }: z.output<typeof body>) {
  const { userRoles } = ownLists(given);
  if (members && userRoles) {
    throw refuseInput({ field: 'body.userRoles', message: 'cannot be given together with members' });
  }
  return userRoles ? { named: userRoles, field: 'userRoles' } : { named: members ?? [], field: 'members' };
}

/** Rules: TEAM-3, TEAM-12, TEAM-18, TEAM-24, FIT-72, FIT-73. */
export const createTeam = endpoint({
  method: 'POST',
  path: '/teams',
  tag: 'Teams',
  summary: 'Create a team, whose owner the caller is',
  policy: { who: 'member', scope: 'team:write' },
  tool: { name: 'create_team', title: 'Create a team' },
  forwardsCredential: true,
  idempotency: { secrets: [] },
  body,
  response: { 201: teamResponse },
  location: ({ team }) => `/teams/${team.id}`,
  async handle(services, { caller, write, remember, body: given, origin, forwarded }) {
    const backend = {
      method: 'POST',
      path: '/api/v1/entity/team',
      body: given,
      pass: passOperation,
      write,
    } satisfies BackendOperation;
    return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
      const { orgId, userId } = caller;
      requireKnownKeys(given, body);
      const { named, field } = namedIn(given);
      await services.limits.count('team', userId);
      const { name, description = null } = given;
      const { id, nowMs } = { id: services.newId(), nowMs: services.clock.now() };
      const own = { id, org_id: orgId, name, description, created_by: userId, created_at: nowMs, updated_at: nowMs };
      const team = { ...own, ...searchKeys(own) };
      const all = withCreator(named, userId);
      return write(async (tx) => {
        requireAllKnown(named, await selectActiveIds(tx, orgId, named), field);
        await insertTeam(tx, team);
        await insertMembers(
          tx,
          toMemberRows(id, all, () => nowMs),
        );
        const details = { name, members: all };
        await appendAudit(tx, services, {
          action: 'team.created',
          orgId,
          actor: caller,
          subjectId: id,
          origin,
          details,
          changes: changesBetween(null, { name, description, members: all }),
        });
        const made = { team: await selectTeam(tx, id, caller), members: await selectMembers(tx, [id]) };
        return remember(tx, {
          ...succeeded('Team created successfully'),
          team: toTeamRecord(requireRight(made.team, caller.isAdmin, 'canRead'), made, caller),
        });
      });
    });
  },
});
