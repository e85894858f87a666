import type { Reader } from '../../../server/src/db/database.ts';
import { findTokenEnds } from '../../../server/src/operator/imported-tokens/public.ts';
import { atOnce } from './pass.ts';
import type { ImportedToken, Staging } from './staging.ts';

/** When a token ended or will end at the latest; both in milliseconds since 1970, and `null` for never. */
interface End {
  readonly revokedAt: number | null;
  readonly expiresAt: number | null;
}

interface Known extends End {
  readonly parentId: string | null;
}

const never: End = { revokedAt: null, expiresAt: null };

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

function both(one: End, other: End): End {
  return {
    revokedAt: earlier(one.revokedAt, other.revokedAt),
    expiresAt: earlier(one.expiresAt, other.expiresAt),
  };
}

/**
 * The ends that tokens of a dump inherit from the tokens that made them, as the file and the store have those: a token ends
 * with its maker, whatever the dump says of it. Rules: CRED-4, SCOPE-23, SCOPE-24.
 */
export class InheritedEnds {
  readonly #staging: Staging;
  /** `null`: neither in the file nor here. */
  readonly #known = new Map<string, Known | null>();

  constructor(staging: Staging) {
    this.#staging = staging;
  }

  /** Tokens as they end with their makers; `null` for one of which a maker is neither in the file nor here. */
  async of(read: Reader, tokens: readonly ImportedToken[]): Promise<readonly (ImportedToken | null)[]> {
    await this.#learn(read, tokens);
    return tokens.map((token) => {
      const end = this.#endOf(token.parentId);
      if (!end) return null;
      const inherited = { at: end.revokedAt ?? 0, by: null, reason: 'The token that made it was revoked' };
      const revoked = token.revoked ?? (end.revokedAt === null ? null : inherited);
      return { ...token, revoked, expiresAt: earlier(token.expiresAt, end.expiresAt) };
    });
  }

  /** Finds out about the makers of some tokens, and their makers, one generation at a time. */
  async #learn(read: Reader, tokens: readonly ImportedToken[]): Promise<void> {
    let parents = tokens.map(({ parentId }) => parentId);
    for (;;) {
      const ids = [...new Set(parents)].filter((id): id is string => id !== null && !this.#known.has(id));
      if (ids.length === 0) return;
      for (let start = 0; start < ids.length; start += atOnce) await this.#find(read, ids.slice(start, start + atOnce));
      parents = ids.map((id) => this.#known.get(id)?.parentId ?? null);
    }
  }

  async #find(read: Reader, ids: readonly string[]): Promise<void> {
    const here = await findTokenEnds(read, ids);
    const inFile = new Map(this.#staging.withIds('tokens', ids).map(({ id, content }) => [id, content]));
    for (const id of ids) {
      const [present, staged] = [here.get(id), inFile.get(id)];
      const told = staged && { revokedAt: staged.revoked?.at ?? null, expiresAt: staged.expiresAt };
      const parentId = present?.parentId ?? staged?.parentId ?? null;
      this.#known.set(id, present || told ? { ...both(present ?? never, told ?? never), parentId } : null);
    }
  }

  /** When a token with this maker ends at the latest; `null` where one of its makers is unknown. A circle ends where it began. */
  #endOf(makerId: string | null): End | null {
    let end = never;
    const seen = new Set<string>();
    for (let id = makerId; id !== null && !seen.has(id); ) {
      seen.add(id);
      const known = this.#known.get(id);
      if (!known) return null;
      end = both(end, known);
      id = known.parentId;
    }
    return end;
  }
}
