/** Origin of a request, for the audit log and the limits. */
export interface Origin {
  /** The `x-request-id` of the request. */
  readonly requestId: string;
  /** The address of the peer, or of the client where a trusted proxy says so. */
  readonly network: string;
  /** Whether the client has left; absent where that cannot be known. */
  readonly hasLeft?: () => boolean;
}
