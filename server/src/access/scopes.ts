/** One scope of the catalogue, as it is shown to people. */
export interface ScopeInfo {
  readonly name: string;
  readonly description: string;
  readonly category: string;
  /** Whether an OAuth client must ask the person before it gets this scope. */
  readonly requiresUserConsent: boolean;
}

const identity = 'Identity';
const access = 'Access';
const organization = 'Organization';
const users = 'Users';
const userGroups = 'User Groups';
const teams = 'Teams';
const tokens = 'Tokens';

function scope<N extends string>(name: N, category: string, description: string, requiresUserConsent = true) {
  return { name, description, category, requiresUserConsent };
}

/** The scopes that this service knows by itself, in the order in which they are shown. Rule: SCOPE-1. */
export const catalogue = [
  scope('openid', identity, 'Sign in with your identity', false),
  scope('profile', identity, 'See your name and picture'),
  scope('email', identity, 'See your e-mail address'),
  scope('offline_access', access, 'Stay signed in while you are away'),
  scope('org:read', organization, 'See the organization'),
  scope('org:write', organization, "Change the organization's profile and logo"),
  scope('org:admin', organization, 'Delete the organization; manage settings, service clients, webhooks and logs'),
  scope('user:read', users, 'See the people of the organization'),
  scope('user:write', users, 'Change profiles and pictures'),
  scope('user:invite', users, 'Create, invite and restore people'),
  scope('user:delete', users, 'Delete people'),
  scope('usergroup:read', userGroups, 'See user groups'),
  scope('usergroup:write', userGroups, 'Change user groups and who is in them'),
  scope('team:read', teams, 'See teams'),
  scope('team:write', teams, 'Change teams'),
  scope('token:read', tokens, 'See your personal access tokens'),
  scope('token:write', tokens, 'Create and revoke your personal access tokens'),
  scope('token:admin', tokens, "See and revoke everybody's personal access tokens"),
] as const satisfies readonly ScopeInfo[];

/** A scope that a route of this service can require. */
export type ScopeName = (typeof catalogue)[number]['name'];

/** What this instance may grant. */
export interface GrantableScopes {
  /** In catalogue order: categories first, then as listed. */
  readonly infos: readonly ScopeInfo[];
  readonly names: ReadonlySet<string>;
}

/**
 * Narrows a catalogue to what the instance grants (`MCP_SCOPES`).
 * @param names what to grant; `null` grants everything. Names outside the catalogue must have been refused before.
 */
export function grantableScopes(all: readonly ScopeInfo[], names: readonly string[] | null): GrantableScopes {
  const wanted = names === null ? null : new Set(names);
  const infos = wanted ? all.filter((info) => wanted.has(info.name)) : [...all];
  const categories = [...new Set(all.map((info) => info.category))];
  infos.sort((a, b) => categories.indexOf(a.category) - categories.indexOf(b.category));
  return { infos, names: new Set(infos.map((info) => info.name)) };
}
