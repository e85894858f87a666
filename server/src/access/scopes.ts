/** A scope of the catalogue, as users see it. */
export interface ScopeInfo {
  readonly name: string;
  readonly description: string;
  readonly category: string;
  /** An OAuth client must ask the user for consent before it gets this scope. */
  readonly requiresUserConsent: boolean;
}

/**
 * Scopes that this service knows without configuration, in the order in which they are listed. Rules: SCOPE-4 to
 * SCOPE-7.
 */
export const catalogue = [
  { name: 'openid', category: 'Identity', requiresUserConsent: false, description: 'Sign in with your identity' },
  { name: 'profile', category: 'Identity', requiresUserConsent: true, description: 'See your name and picture' },
  { name: 'email', category: 'Identity', requiresUserConsent: true, description: 'See your e-mail address' },
  {
    name: 'offline_access',
    category: 'Access',
    requiresUserConsent: true,
    description: 'Stay signed in while you are away',
  },
  { name: 'org:read', category: 'Organization', requiresUserConsent: true, description: 'See the organization' },
  {
    name: 'org:write',
    category: 'Organization',
    requiresUserConsent: true,
    description: "Change the organization's profile and logo",
  },
  {
    name: 'org:admin',
    category: 'Organization',
    requiresUserConsent: true,
    description: 'Delete the organization; manage settings, service clients, webhooks and logs',
  },
  {
    name: 'user:read',
    category: 'Users',
    requiresUserConsent: true,
    description: 'See the users of the organization',
  },
  { name: 'user:write', category: 'Users', requiresUserConsent: true, description: 'Change profiles and pictures' },
  {
    name: 'user:invite',
    category: 'Users',
    requiresUserConsent: true,
    description: 'Create, invite and restore users',
  },
  { name: 'user:delete', category: 'Users', requiresUserConsent: true, description: 'Delete people' },
  { name: 'usergroup:read', category: 'User Groups', requiresUserConsent: true, description: 'See user groups' },
  {
    name: 'usergroup:write',
    category: 'User Groups',
    requiresUserConsent: true,
    description: 'Change user groups and their members',
  },
  { name: 'team:read', category: 'Teams', requiresUserConsent: true, description: 'See teams' },
  { name: 'team:write', category: 'Teams', requiresUserConsent: true, description: 'Change teams' },
  { name: 'token:read', category: 'Tokens', requiresUserConsent: true, description: 'See your personal access tokens' },
  {
    name: 'token:write',
    category: 'Tokens',
    requiresUserConsent: true,
    description: 'Create and revoke your personal access tokens',
  },
  {
    name: 'token:admin',
    category: 'Tokens',
    requiresUserConsent: true,
    description: 'See and revoke the personal access tokens of all users',
  },
] as const satisfies readonly ScopeInfo[];

/** A scope that a route of this service can require. */
export type ScopeName = (typeof catalogue)[number]['name'];

/** Scopes that this instance may grant. */
export interface GrantableScopes {
  /** In catalogue order: categories first, then as listed. */
  readonly infos: readonly ScopeInfo[];
  readonly names: ReadonlySet<string>;
}

/**
 * Narrows a catalogue to the scopes that the instance grants (`MCP_SCOPES`).
 * @param names the scopes to grant; `null` grants everything. Names outside the catalogue must have been rejected
 * before.
 */
export function grantableScopes(all: readonly ScopeInfo[], names: readonly string[] | null): GrantableScopes {
  const wanted = names === null ? null : new Set(names);
  const infos = wanted ? all.filter((info) => wanted.has(info.name)) : [...all];
  const categories = [...new Set(all.map((info) => info.category))];
  infos.sort((a, b) => categories.indexOf(a.category) - categories.indexOf(b.category));
  return { infos, names: new Set(infos.map((info) => info.name)) };
}
