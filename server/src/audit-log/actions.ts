/** Everything that is recorded, each with the kind of thing that its subject is; `null`: it has none. */
const subjectKinds = {
  'org.created': 'organization',
  'org.restored': 'organization',
  'org.purged': 'organization',
  'org.updated': 'organization',
  'org.deleted': 'organization',
  'org.onboarding-set': 'organization',
  'user.created': 'user',
  'user.updated': 'user',
  'user.deleted': 'user',
  'user.restored': 'user',
  'user.erased': 'user',
  'user.invited': 'user',
  'user.unlinked': 'user',
  'user.email-confirmed': 'user',
  'user.email-given-back': 'user',
  'invitation.shown': 'user',
  'invitation.revoked': 'user',
  'password.reset-requested': 'user',
  'password.reset': 'user',
  'password.changed': 'user',
  'code.requested': 'user',
  'sign-in.steps-set': 'organization',
  'sign-in.refused': 'user',
  'sign-in.unblocked': 'user',
  'service.created': 'service-client',
  'service.deleted': 'service-client',
  'service.secret-rotated': 'service-client',
  'service.token-issued': 'service-client',
  'service.token-revoked': 'service-client',
  'webhook.created': 'webhook',
  'webhook.updated': 'webhook',
  'webhook.deleted': 'webhook',
  'webhook.secret-rotated': 'webhook',
  'webhook.tested': 'webhook',
  'webhook.replayed': 'webhook',
  'webhook.switched-off': 'webhook',
  'relay.replayed': null,
  'dead-letters.requeued': null,
  'dead-letter.deleted': null,
  'operator.recovery-link': 'user',
  'config.reloaded': null,
  'keys.signing-rotated': null,
  'keys.encryption-rotated': null,
  'settings.oidc-set': null,
  'settings.oidc-confirmed': null,
  'settings.oidc-removed': null,
  'settings.oidc-tested': null,
  'settings.mail-set': null,
  'settings.mail-confirmed': null,
  'settings.mail-removed': null,
  'settings.mail-tested': null,
  'group.created': 'group',
  'group.renamed': 'group',
  'group.deleted': 'group',
  'group.members-added': 'group',
  'group.members-removed': 'group',
  'team.created': 'team',
  'team.updated': 'team',
  'team.deleted': 'team',
  'picture.stored': 'user',
  'picture.removed': 'user',
  'session.started': 'session',
  'session.refreshed': 'session',
  'session.refresh-reused': 'session',
  'session.ended': 'session',
  'token.created': 'token',
  'token.revoked': 'token',
  'tokens.pruned': null,
  'audit.removed': null,
  'audit.erasures-signed': null,
  'store.seeded': 'organization',
  'store.restored': 'organization',
} as const;

/** An act that is recorded. */
export type AuditAction = keyof typeof subjectKinds;

const kinds: Readonly<Record<string, string | null>> = subjectKinds;

/**
 * Returns the kind of an act's subject; `null` where there is none, or the act is unknown to this release. A picture is
 * that of a user, or the logo of the organization.
 */
export function subjectKindOf(
  action: string,
  { subjectId, orgId }: { readonly subjectId: string | null; readonly orgId: string | null },
): string | null {
  if (subjectId === null) return null;
  return subjectId === orgId ? 'organization' : (kinds[action] ?? null);
}

/** Returns the area of an act: `token` for `token.created`. Records are found by it. */
export function areaOf(action: string): string {
  return action.slice(0, Math.max(0, action.indexOf('.')));
}
