import { foldCase } from '../../text/plain-text.ts';
import type { StoredTeam } from './team.ts';
import type { NamedMember } from './team-input.ts';

/** Returns the folded forms of name and description that searches use. */
export function searchKeys({ name, description }: Pick<StoredTeam, 'name' | 'description'>) {
  return { name_key: foldCase(name), description_key: foldCase(description ?? '') };
}

interface TeamChange {
  readonly name: string | undefined;
  /** `null`: none any more. */
  readonly description: string | null | undefined;
}

/** Returns a team after a change. Rule: TEAM-22. */
export function changedTeam<T extends StoredTeam>(team: T, change: TeamChange, nowMs: number): T {
  const { name = team.name, description = team.description } = change;
  return { ...team, name, description, ...searchKeys({ name, description }), updated_at: nowMs };
}

/** Returns the fields of a team that audit records compare: members in the order of their ids. Rule: AUDIT-9. */
export function auditedTeam({ name, description }: StoredTeam, members: readonly NamedMember[]) {
  const named = members.map(({ userId, role }) => ({ userId, role }));
  return { name, description, members: named.sort((one, other) => (one.userId < other.userId ? -1 : 1)) };
}
