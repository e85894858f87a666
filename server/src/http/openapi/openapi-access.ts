import type { Policy } from '../../access/policy.ts';

type Json = Record<string, unknown>;

const users = {
  member: 'Any member',
  admin: 'Administrators',
  adminOrSelf: 'Administrators, and the user in question',
} as const;

/** Returns the description of the policy for the document. */
export function access({ policy, isOAuth }: { readonly policy: Policy; readonly isOAuth?: true }): Json {
  if (isOAuth)
    return { security: [{ client: [] }, {}], description: 'Service clients, named by HTTP Basic or in the body.' };
  if (policy.who === 'anyone') return { security: [], description: 'Open: no credential is needed.' };
  if (policy.who === 'holder') return { description: 'Takes the credential that it consumes as the bearer token.' };
  if (policy.who === 'service') {
    return {
      security: [{ service: [] }],
      description: `Services, by a scoped token with \`${policy.scope}\`.`,
      'x-required-scope': policy.scope,
    };
  }
  const who = users[policy.who];
  if ('orService' in policy && policy.orService !== undefined) {
    return {
      security: [{ bearer: [] }, { service: [] }],
      description: `${who}; a personal access token needs the scope \`${policy.scope}\`. Services, by a scoped token with \`${policy.orService}\`.`,
      'x-required-scope': policy.scope,
    };
  }
  if ('anyScope' in policy) return { description: `${who}; a personal access token of any scope.` };
  if ('sessionOnly' in policy)
    return { description: `${who}, signed in; not with a personal access token.`, 'x-session-only': true };
  return {
    description: `${who}; a personal access token needs the scope \`${policy.scope}\`.`,
    'x-required-scope': policy.scope,
  };
}
