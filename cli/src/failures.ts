/** How the command ends when it cannot do what was asked. Rule: CLI-6. */
export const exitCodes = { failed: 1, usage: 2, refused: 3 } as const;

/** `failed`: it could not; `usage`: it was called wrongly; `refused`: a rule, or the operator, says no. */
export type FailureKind = keyof typeof exitCodes;

/** Ends the command. The message is for the operator: it says what is wrong and what to do, and holds no secret. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly kind: FailureKind;
  /** What else programs are told, beside code and message. */
  readonly more: Readonly<Record<string, unknown>>;
  /** What else people are told, in lines below the message. */
  readonly words: string | null;

  constructor(
    kind: FailureKind,
    message: string,
    {
      more = {},
      words = null,
      ...options
    }: ErrorOptions & { readonly more?: Readonly<Record<string, unknown>>; readonly words?: string | null } = {},
  ) {
    super(message, options);
    this.kind = kind;
    this.more = more;
    this.words = words;
  }
}
