import type { Reader } from '../../../server/src/db/database.ts';
import { findTokenEnds } from '../../../server/src/operator/imported-tokens/public.ts';
import { atOnce } from './pass.ts';
import type { ImportedToken, Staging } from './staging.ts';

/** Latest revocation and expiry of a token; both in milliseconds since 1970, and `null` for never. */
interface End {
  readonly revokedAt: number | null;
  readonly expiresAt: number | null;
}

/** What a token can pass on. */
interface Grant {
  readonly userId: string;
  readonly scopes: readonly string[];
}

interface Known extends End {
  readonly parentId: string | null;
  /** `null`: only its end is known. */
  readonly grant: Grant | null;
}

/** Why a token has no end that it inherits. */
type Broken = 'unknown' | 'circle';

/** A token of a dump as it ends with its makers, or what is wrong with its makers. */
export type Inherited =
  | { readonly token: ImportedToken }
  | { readonly problem: { readonly field: string; readonly message: string } };

const never: End = { revokedAt: null, expiresAt: null };

const messages: Readonly<Record<Broken, string>> = {
  unknown: 'names a token that is neither in the file nor here, so that it is unknown whether it was revoked',
  circle: 'leads back to the same token: no token is made by itself or by one that it made',
};

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

function both(one: End, other: End): End {
  return {
    revokedAt: earlier(one.revokedAt, other.revokedAt),
    expiresAt: earlier(one.expiresAt, other.expiresAt),
  };
}

/** What a token has that its maker could not give it; `null`: nothing. Rules: CRED-12, SCOPE-22. */
function excessOf({ userId, scopes }: Grant, maker: Grant | null) {
  if (!maker) return null;
  if (maker.userId !== userId) return { field: 'parentId', message: 'names a token of another user' };
  const isWithin = scopes.every((scope) => maker.scopes.includes(scope));
  return isWithin ? null : { field: 'scopes', message: 'names scopes that the token that made it does not have' };
}

/**
 * The ends that tokens of a dump inherit from the tokens that made them, as the file and the store have those: a token ends
 * with its maker, whatever the dump says of it. What no token can be is a problem: made by itself, by one that it made, by
 * one of another user or of fewer scopes. Rules: CRED-4, CRED-12, SCOPE-23, SCOPE-24.
 */
export class InheritedEnds {
  readonly #staging: Staging;
  /** `null`: neither in the file nor here. */
  readonly #known = new Map<string, Known | null>();
  readonly #ends = new Map<string, End | Broken>();

  constructor(staging: Staging) {
    this.#staging = staging;
  }

  /** Tokens as they end with their makers, in their order. */
  async of(read: Reader, tokens: readonly ImportedToken[]): Promise<readonly Inherited[]> {
    await this.#learn(read, tokens);
    return tokens.map((token) => {
      const end = this.#endOf(token.parentId);
      if (typeof end === 'string') return { problem: { field: 'parentId', message: messages[end] } };
      const problem = excessOf(token, this.#known.get(token.parentId ?? '')?.grant ?? null);
      if (problem) return { problem };
      const inherited = { at: end.revokedAt ?? 0, by: null, reason: 'The token that created it was revoked' };
      const revoked = token.revoked ?? (end.revokedAt === null ? null : inherited);
      return { token: { ...token, revoked, expiresAt: earlier(token.expiresAt, end.expiresAt) } };
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
      const grant = present?.grant ?? staged ?? null;
      this.#known.set(id, present || told ? { ...both(present ?? never, told ?? never), parentId, grant } : null);
    }
  }

  /** When a token with this maker ends at the latest. Each maker is gone through once, however long the line is. */
  #endOf(makerId: string | null): End | Broken {
    const line = new Map<string, Known>();
    let end: End | Broken = never;
    for (let id = makerId; id !== null; ) {
      const [known, found] = [this.#known.get(id), this.#ends.get(id)];
      if (found || !known || line.has(id)) {
        end = found ?? (known ? 'circle' : 'unknown');
        break;
      }
      line.set(id, known);
      id = known.parentId;
    }
    for (const [id, known] of [...line].toReversed()) {
      if (typeof end !== 'string') end = both(end, known);
      this.#ends.set(id, end);
    }
    return end;
  }
}
