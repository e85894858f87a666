import { foldCase } from '../../text/plain-text.ts';
import type { NamedMember, StoredTeam } from './team.ts';

/** Returns the folded forms of name and description that searches use. */
export function searchKeys({ name, description }: Pick<StoredTeam, 'name' | 'description'>) {
  return { name_key: foldCase(name), description_key: foldCase(description ?? '') };
}

interface TeamChange {
  readonly name: string | undefined;
  /** `null`: none any more. */
  readonly description: string | null | undefined;
  readonly members: readonly NamedMember[] | undefined;
}

/**
 * Returns a team after a change, and the names of the given fields; with none, the team is unchanged. Rule: TEAM-22.
 */
export function changedTeam(team: StoredTeam, change: TeamChange, nowMs: number) {
  const fields = Object.entries(change).flatMap(([field, value]) => (value === undefined ? [] : [field]));
  if (fields.length === 0) return { after: team, fields };
  const { name = team.name, description = team.description } = change;
  return { after: { ...team, name, description, ...searchKeys({ name, description }), updated_at: nowMs }, fields };
}

/** Returns the fields of a team that audit records compare: members in the order of their ids. Rule: AUDIT-9. */
export function auditedTeam({ name, description }: StoredTeam, members: readonly NamedMember[]) {
  const named = members.map(({ userId, role }) => ({ userId, role }));
  return { name, description, members: named.sort((one, other) => (one.userId < other.userId ? -1 : 1)) };
}
