/** The groups that come with an organization, which nobody can delete. Rule: ORG-10. */
export const defaultGroups = ['admin', 'everyone', 'standard'] as const;

/** The type, and the name, of such a group. */
export type DefaultGroup = (typeof defaultGroups)[number];
