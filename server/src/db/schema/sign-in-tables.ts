import type { CredentialHash } from '../../base/secret.ts';

/** Milliseconds since 1970. */
type Ms = number;

/** Why a link works no longer. */
export type LinkEndReason =
  | 'used'
  | 'replaced'
  | 'email-changed'
  | 'password-changed'
  | 'owner-deleted'
  | 'maker-left'
  | 'sessions-ended';

/** Passwords of users. */
export interface PasswordCredentials {
  user_id: string;
  /** argon2id in PHC string form. */
  password_hash: string;
  updated_at: Ms;
}

/** Sign-in steps of an organization. */
export interface AuthConfigs {
  org_id: string;
  /** JSON: the sign-in steps in order. */
  steps: string;
  updated_at: Ms;
  /** The administrator who set the steps; `null`: no one, the operator, or not known. */
  set_by: string | null;
}

/** Sessions of users. */
export interface Sessions {
  id: string;
  org_id: string;
  user_id: string;
  created_at: Ms;
  ended_at: Ms | null;
  /** From where it began; `null` for those of earlier releases. */
  network: string | null;
  /** Time when it last began or was refreshed; `null` for those of earlier releases. */
  active_at: Ms | null;
  end_reason:
    | 'logout'
    | 'refresh-reuse'
    | 'owner-deleted'
    | 'address-proved'
    | 'password-changed'
    | 'administrator'
    | 'sign-in-steps'
    | null;
  /** The sign-in methods that its owner passed, space-separated; `null` for those of earlier releases. */
  methods: string | null;
}

/** The tokens of a session. */
export interface SessionTokens {
  hash: CredentialHash;
  session_id: string;
  kind: 'access' | 'refresh';
  expires_at: Ms;
  /** Time when a refresh token was exchanged for the next one. */
  rotated_at: Ms | null;
  /**
   * For a refresh token that was just exchanged: the next pair, encrypted with a key that only the token's owner can
   * derive.
   */
  successor: string | null;
}

/** Progress of users who sign in in several steps. */
export interface SignInProgress {
  /** The `jti` of the sign-in's own token. */
  id: string;
  user_id: string;
  steps_done: number;
  /** Of the sign-in configuration whose steps are counted. */
  config_updated_at: Ms;
  expires_at: Ms;
  /** The methods of the steps done, space-separated; `null` for sign-ins begun in an earlier release. */
  methods: string | null;
}

/** The code that a user got by mail, in earlier releases; see `MailedCodes`. */
export interface OneTimeCodes {
  user_id: string;
  /** Keyed hash of the code; `null` once it was used. */
  mac: string | null;
  expires_at: Ms;
  /** Wrong ones since. */
  tries: number;
}

/** From where a user signed in. */
interface KnownNetworks {
  user_id: string;
  /** As `networkOf` writes it. */
  network: string;
  last_at: Ms;
}

/** The wrong one-time codes of a user in a window of 24 hours, in earlier releases; see `MailedCodes`. */
interface WrongCodes {
  user_id: string;
  count: number;
  ends_at: Ms;
}

/** The last one-time code of a user that was asked for from a network, and the wrong ones from there. */
export interface MailedCodes {
  user_id: string;
  /** As `networkOf` writes it; empty for all networks together that the user did not sign in from. */
  network: string;
  /** Keyed hash of the code; `null` before the first one, and once it was used. */
  mac: string | null;
  expires_at: Ms;
  /** Wrong codes since, from this network. */
  tries: number;
  /** Wrong codes since, from elsewhere. */
  other_tries: number;
  /** Wrong codes from this network in a window of 24 hours. */
  wrong_count: number;
  wrong_ends_at: Ms;
}

/** Tables that slow down guessing. */
export interface GuessingTables {
  known_networks: KnownNetworks;
  wrong_codes: WrongCodes;
  mailed_codes: MailedCodes;
}

/** Identities of users at a provider of single sign-on. */
export interface ExternalIdentities {
  issuer: string;
  /** The user's permanent id at the issuer; the address may be given to another person later. */
  subject: string;
  user_id: string;
  created_at: Ms;
  /** When the user last signed in by it; `null`: never, or with an earlier release. */
  signed_in_at: Ms | null;
  /** When an administrator forgot the link; the subject stays known as that of the user. `null`: it is linked. */
  unlinked_at: Ms | null;
}

/** When all sessions of a user ended last, for as long as anyone may be at the provider who went there before. */
export interface SignInEnds {
  user_id: string;
  ended_at: Ms;
}

/** Tickets that browsers bring back from the provider. */
export interface SignInTickets {
  hash: CredentialHash;
  user_id: string;
  /** The `jti` of the sign-in that it was fetched for. */
  sign_in_id: string;
  expires_at: Ms;
  /** The identity that it was fetched with; `null`: an earlier release issued it. */
  issuer: string | null;
  subject: string | null;
}

/** A service that gets scoped tokens. */
export interface ServiceClients {
  id: string;
  /** `null`: registered by the operator before there was an organization. */
  org_id: string | null;
  name: string;
  secret_hash: CredentialHash;
  /** Space-separated. */
  scopes: string;
  /** `null`: the operator. */
  created_by: string | null;
  /** The personal access token that created it, and that it ends with. */
  created_by_token: string | null;
  /** The user who rotated the secret last; `null`: it was never rotated. */
  secret_by: string | null;
  /** Counts too, until `earlier_secret_until`. */
  earlier_secret_hash: CredentialHash | null;
  earlier_secret_until: Ms | null;
  created_at: Ms;
  last_used_at: Ms | null;
  deleted_at: Ms | null;
}

/** A scoped token of a service. */
export interface ServiceTokens {
  hash: CredentialHash;
  client_id: string;
  /** Space-separated. */
  scopes: string;
  created_at: Ms;
  expires_at: Ms;
  revoked_at: Ms | null;
}
