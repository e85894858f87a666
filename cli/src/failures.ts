/** Exit codes of a command that fails. Rule: CLI-6. */
export const exitCodes = { failed: 1, usage: 2, refused: 3 } as const;

/** `failed`: it could not be done; `usage`: wrong usage; `refused`: rejected by a rule, or by the operator. */
export type FailureKind = keyof typeof exitCodes;

/**
 * Ends the command. The message is for the operator: it says what is wrong and what to do next, and contains no secret.
 */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly kind: FailureKind;
  /** Further data for programs, besides code and message. */
  readonly more: Readonly<Record<string, unknown>>;
  /** Further text for people, in lines below the message. */
  readonly text: string | null;

  constructor(
    kind: FailureKind,
    message: string,
    {
      more = {},
      text = null,
      ...options
    }: ErrorOptions & { readonly more?: Readonly<Record<string, unknown>>; readonly text?: string | null } = {},
  ) {
    super(message, options);
    this.kind = kind;
    this.more = more;
    this.text = text;
  }
}
