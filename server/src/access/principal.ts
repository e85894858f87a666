interface UserIdentity {
  readonly userId: string;
  readonly orgId: string;
  /** Membership of the `admin` group, as of this verification. */
  readonly isAdmin: boolean;
}

/** A user who signed in. Sessions skip scope checks. */
export interface SessionPrincipal extends UserIdentity {
  readonly kind: 'session';
  readonly sessionId: string;
}

/** A personal access token, acting as its owner within its scopes. */
interface TokenPrincipal extends UserIdentity {
  readonly kind: 'token';
  readonly tokenId: string;
  /** Effective: granted and still grantable here. */
  readonly scopes: ReadonlySet<string>;
  /** Milliseconds since 1970; `null`: never. */
  readonly expiresAtMs: number | null;
}

/** The caller of a request, proved by a credential. */
export type Principal = SessionPrincipal | TokenPrincipal;

/** A service, proved by a scoped token: it is no user, and a member of nothing. */
export interface ServicePrincipal {
  readonly kind: 'service';
  /** The registered client that it is; `null` for one that signs its tokens itself. */
  readonly clientId: string | null;
  readonly scopes: ReadonlySet<string>;
  /** The organization is deleted: the scopes are those that remain then. Rule: ORG-27. */
  readonly isOrganizationDeleted: boolean;
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number;
}

/** The store's record of a presented credential. */
export interface CredentialRecord {
  readonly principal: Principal;
  /** Why it no longer counts; `null`: it does, until it expires. */
  readonly invalidReason: 'revoked' | 'signedOut' | 'ownerGone' | null;
  /** Milliseconds since 1970; `null`: never. Valid until just before this instant. */
  readonly expiresAtMs: number | null;
}
