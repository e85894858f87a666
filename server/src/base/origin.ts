/** Origin of a request, for the audit log and the limits. */
export interface Origin {
  /** The `x-request-id` of the request. */
  readonly requestId: string;
  /** The address of the peer, or of the client where a trusted proxy says so. */
  readonly network: string;
  /** Whether nobody waits for the answer any more; absent where nobody could tell. */
  readonly hasLeft?: () => boolean;
}
