/** Milliseconds since 1970. */
type Ms = number;

/** The record of what happened to organizations and users. */
export interface Outbox {
  /** Counts up in commit order, without gaps. */
  sequence: number;
  id: string;
  org_id: string;
  event_type: string;
  occurred_at: Ms;
  /** JSON of the payload. */
  payload: string;
}

/** Progress of events on one subscription, and the node that relays them. */
export interface Relays {
  /** The stream and the destination, such as `entity-events/broker`. */
  name: string;
  /** All events up to this one have arrived, or are dead letters. */
  position: number;
  /** The node that holds the lease; `null`: none. */
  holder: string | null;
  held_until: Ms;
  /** Attempts to send the next event since the last one that arrived. */
  attempts: number;
  /** Attempts among these in which the event itself was refused. */
  refusals: number;
  /** Time of the next attempt after a failure. */
  next_try_at: Ms | null;
  failing_since: Ms | null;
  last_error: string | null;
  /** Time of the last delivery. */
  delivered_at: Ms | null;
}

/** Events of one subscription that were set aside or requeued. */
export interface DeadLetters {
  id: string;
  /** Of the relay. */
  relay: string;
  sequence: number;
  attempts: number;
  last_error: string | null;
  created_at: Ms;
  /** Time when it was requeued; `null`: it is dead. */
  requeued_at: Ms | null;
}

/** Addresses that administrators have events sent to. */
export interface Webhooks {
  id: string;
  org_id: string | null;
  /** In the normal form of URLs; its path may be a secret of the receiver's. */
  url: string;
  description: string | null;
  /** Space-separated types of event; `null`: all, future ones included. */
  events: string | null;
  /** Why nothing is sent; `null`: it is on. */
  off_reason: 'administrator' | 'gone' | 'failing' | null;
  off_at: Ms | null;
  /** Encrypted. */
  secret: string;
  /** Encrypted; messages are signed with it too until `earlier_secret_until`. */
  earlier_secret: string | null;
  earlier_secret_until: Ms | null;
  created_by: string | null;
  /** The personal access token that created it, and that it ends with; `null`: a session did. */
  created_by_token: string | null;
  /** The user who last changed the address; `null`: it is the one given at creation. */
  address_by: string | null;
  /** The user who rotated the secret last; `null`: it was never rotated. */
  secret_by: string | null;
  created_at: Ms;
  updated_at: Ms;
}

/** Outcomes of messages to a webhook. */
export interface WebhookAttempts {
  id: string;
  webhook_id: string;
  event_id: string;
  event_type: string;
  /** `null` for a test message, which is no event. */
  sequence: number | null;
  /** Counts up from 1 for each event. */
  attempt: number;
  attempted_at: Ms;
  duration_ms: number;
  /** The status of the response; `null` without one. */
  status: number | null;
  /** Why it did not arrive; `null`: it did. */
  reason: string | null;
}

/** The record of who did what. Written once; only what can be erased is ever changed. Rules: AUDIT-9, AUDIT-10, AUDIT-14. */
export interface AuditLog {
  /** Counts up from 1 in commit order, without gaps. */
  sequence: number;
  id: string;
  occurred_at: Ms;
  org_id: string | null;
  action: string;
  /** Of the action: what stands before its dot. */
  area: string;
  outcome: 'success' | 'failure';
  actor_user_id: string | null;
  actor_token_id: string | null;
  actor_client_id: string | null;
  subject_id: string | null;
  /** Whose the subject is: of a token or a session. */
  subject_owner_id: string | null;
  request_id: string;
  /** The address of the peer, or of the client where a trusted proxy said so; empty once erased. */
  network: string;
  /** Canonical JSON of what else is worth keeping; never a secret. `{}` once erased. */
  details: string;
  /** Canonical JSON of the changes, field by field; never a secret. `{}` once erased. */
  changes: string;
  /** Random, so that erased data cannot be guessed from its hash; `null`: erased, with network, details and changes. */
  salt: string | null;
  /** Of salt, network, details and changes. */
  content_hash: string;
  previous_hash: string;
  /** Of everything but what can be erased, which counts by its hash. */
  hash: string;
}

/** Checkpoints in the place of records that were removed. */
interface AuditCheckpoints {
  name: 'removed';
  /** Number and hash of the last record that was removed, encrypted. */
  content: string;
  made_at: Ms;
}

/** The signature of a record of an erasure. */
interface AuditErasures {
  /** Of the record. */
  sequence: number;
  /** HMAC of number and hash of the record, with the encryption key. */
  mac: string;
  signed_at: Ms;
}

/** The tables of the audit log. */
export interface AuditTables {
  audit_log: AuditLog;
  audit_checkpoints: AuditCheckpoints;
  audit_erasures: AuditErasures;
}
