/** A token that another one made. */
export interface MadeToken {
  readonly id: string;
  readonly parentId: string;
  readonly isRevoked: boolean;
}

/**
 * The circles among tokens that made each other, each with the ids of its tokens, unless all of those are revoked. Every
 * token is gone through once. Rule: CRED-12.
 */
export function circlesOf(tokens: readonly MadeToken[]): readonly (readonly string[])[] {
  const byId = new Map(tokens.map((token) => [token.id, token]));
  const seen = new Set<string>();
  const circles: MadeToken[][] = [];
  for (const { id } of tokens) {
    const line: MadeToken[] = [];
    let token = byId.get(id);
    while (token && !seen.has(token.id)) {
      seen.add(token.id);
      line.push(token);
      token = byId.get(token.parentId);
    }
    const start = token ? line.indexOf(token) : -1;
    if (start >= 0) circles.push(line.slice(start));
  }
  return circles
    .filter((circle) => circle.some(({ isRevoked }) => !isRevoked))
    .map((circle) => circle.map(({ id }) => id));
}
