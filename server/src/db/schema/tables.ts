import type { Generated, Insertable } from 'kysely';
import type { CredentialHash } from '../../base/secret.ts';
import type { AuditTables, DeadLetters, Outbox, Relays, WebhookAttempts, Webhooks } from './event-tables.ts';
import type { NodeTables } from './node-tables.ts';
import type {
  AuthConfigs,
  ExternalIdentities,
  GuessingTables,
  LinkEndReason,
  OneTimeCodes,
  PasswordCredentials,
  ServiceClients,
  ServiceTokens,
  Sessions,
  SessionTokens,
  SignInEnds,
  SignInProgress,
  SignInTickets,
} from './sign-in-tables.ts';

/** 0 or 1: the boolean that both engines store alike. */
type Flag = 0 | 1;
/** Milliseconds since 1970. */
type Ms = number;

interface Organizations {
  id: string;
  /** Always 1 and unique: the store itself allows only one organization. Rule: ORG-12. */
  singleton: 1;
  slug: string;
  account_type: 'individual' | 'business';
  registered_name: string | null;
  short_name: string | null;
  domain: string;
  contact_email: string;
  phone_number: string | null;
  /** JSON of an address. */
  permanent_address: string | null;
  onboarding_status: 'notConfigured' | 'configured' | 'skipped';
  is_deleted: Flag;
  deleted_by: string | null;
  created_at: Ms;
  updated_at: Ms;
}

interface Users {
  id: string;
  org_id: string;
  slug: string;
  /** Normalized; unique in the organization, deleted users included. */
  email: string;
  full_name: string;
  /** The full name as it is searched and sorted by: see `foldCase`. */
  name_key: string;
  first_name: string | null;
  middle_name: string | null;
  last_name: string | null;
  mobile: string | null;
  designation: string | null;
  /** JSON of an address. */
  address: string | null;
  /** The last verified address while `email` is unverified: mail about the account goes there. `null`: `email` is verified. */
  recovery_email: string | null;
  /** Time when the account's verified address became verified; `null` once the user is erased. */
  email_verified_at: Ms | null;
  /** Whether the user chose the verified address, and confirmed it by its link alone. */
  email_is_own: Generated<Flag>;
  has_logged_in: Flag;
  /**
   * Time of the first complete sign-in since the account was created or restored. Unlike `has_logged_in` it cannot be
   * set by callers.
   */
  signed_in_at: Ms | null;
  is_deleted: Flag;
  deleted_by: string | null;
  /** Time when the data of a deleted user was erased for good; `null`: it was not. */
  erased_at: Ms | null;
  created_at: Ms;
  updated_at: Ms;
}

interface UserGroups {
  id: string;
  org_id: string;
  slug: string;
  name: string;
  /** The name in lower case, for uniqueness. */
  name_key: string;
  type: 'admin' | 'standard' | 'everyone' | 'custom';
  is_system: Flag;
  is_deleted: Flag;
  created_at: Ms;
  updated_at: Ms;
}

interface GroupMembers {
  group_id: string;
  user_id: string;
}

interface PersonalAccessTokens {
  id: string;
  hash: CredentialHash;
  org_id: string;
  user_id: string;
  name: string;
  /** The name as it is searched by: see `foldCase`. */
  name_key: string;
  /** Space-separated, in the order in which they were asked for. */
  scopes: string;
  created_at: Ms;
  /** `null`: never. */
  expires_at: Ms | null;
  last_used_at: Ms | null;
  /** The token that created this one; revoking that one revokes this one. */
  parent_id: string | null;
  revoked_at: Ms | null;
  revoked_by: string | null;
  revoke_reason: string | null;
}

interface OneTimeLinks {
  id: string;
  /** Of the secret in the link; `null` where the mail leads to the sign-in page. */
  hash: CredentialHash | null;
  org_id: string;
  user_id: string;
  purpose: 'invitation' | 'reset' | 'confirmation' | 'approval';
  /** For an invitation: the user had been a member before. */
  is_returning: Flag;
  /** `sending` until the mail server has responded; `shown` to an administrator, who passes it on. */
  delivery: 'sending' | 'sent' | 'failed' | 'shown';
  created_by: string | null;
  created_at: Ms;
  /** `null`: never. */
  expires_at: Ms | null;
  ended_at: Ms | null;
  end_reason: LinkEndReason | null;
  /** It is the last link of its purpose that the user got, since the account was created or restored. */
  is_current: Flag;
  /** Of a confirmation: whether the current password is asked for, because the address was set without it. */
  needs_password: Generated<Flag>;
  /** Of a confirmation: the address that it makes the user's, which another user holds unverified; `null`: the user's own one. */
  email: string | null;
}

/** `secret_by` gave the secret, `null`: with the last change. `confirmed_by` confirmed it since, `null`: no one. */
interface Settings {
  name: 'smtp' | 'oidc';
  /** Encrypted JSON. */
  content: string;
  updated_by: string;
  updated_at: Ms;
  secret_by: string | null;
  confirmed_by: string | null;
}

interface Pictures {
  /** The user, or the organization whose logo it is. */
  owner_id: string;
  org_id: string;
  /** Base64; `null` after removal. */
  content: string | null;
  mime_type: string | null;
  updated_at: Ms;
}

interface Teams {
  id: string;
  org_id: string;
  name: string;
  /** The name as it is searched by: see `foldCase`. */
  name_key: string;
  description: string | null;
  /** The description as it is searched by; empty without one. */
  description_key: string;
  created_by: string;
  created_at: Ms;
  updated_at: Ms;
}

interface TeamMembers {
  team_id: string;
  user_id: string;
  role: 'OWNER' | 'WRITER' | 'READER';
  joined_at: Ms;
}

interface SharedKeys {
  name: 'signing';
  /** Encrypted. */
  content: string;
  created_at: Ms;
}

interface Counters {
  name: string;
  value: number;
}

interface SchemaMigrations {
  version: number;
  name: string;
  applied_at: Ms;
}

/** Counts shared by all nodes: acts in a window, or failed sign-ins. */
export interface LimitCounts {
  /** A hash of the act and its key. */
  key: string;
  count: number;
  last_at: Ms;
  /** Time of the one before the last. */
  earlier_at: Ms;
  /** Time when the window, or the wait, ends. */
  until_at: Ms;
}

/** Every table, as both engines hold it. SQL names are snake_case; stores and nouns cross over to camelCase. */
export interface Tables extends AuditTables, GuessingTables, NodeTables {
  organizations: Organizations;
  users: Users;
  password_credentials: PasswordCredentials;
  user_groups: UserGroups;
  group_members: GroupMembers;
  auth_configs: AuthConfigs;
  personal_access_tokens: PersonalAccessTokens;
  sessions: Sessions;
  session_tokens: SessionTokens;
  one_time_links: OneTimeLinks;
  sign_in_progress: SignInProgress;
  one_time_codes: OneTimeCodes;
  external_identities: ExternalIdentities;
  sign_in_tickets: SignInTickets;
  sign_in_ends: SignInEnds;
  service_clients: ServiceClients;
  service_tokens: ServiceTokens;
  settings: Settings;
  pictures: Pictures;
  teams: Teams;
  team_members: TeamMembers;
  outbox: Outbox;
  relays: Relays;
  dead_letters: DeadLetters;
  webhooks: Webhooks;
  webhook_attempts: WebhookAttempts;
  counters: Counters;
  shared_keys: SharedKeys;
  schema_migrations: SchemaMigrations;
  limit_counts: LimitCounts;
}

/** A row as it is written to table `T`. */
export type NewRow<T extends keyof Tables> = Insertable<Tables[T]>;
