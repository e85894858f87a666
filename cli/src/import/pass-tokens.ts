import type { Reader, Tx } from '../../../server/src/db/database.ts';
import {
  addImportedTokens,
  planTokens,
  revokeImportedToken,
} from '../../../server/src/operator/imported-tokens/public.ts';
import { operator } from '../operator-store.ts';
import { InheritedEnds } from './inherited-ends.ts';
import { atOnce, type Pass, step } from './pass.ts';
import type { ImportedToken, Staged } from './staging.ts';

type Plan = Awaited<ReturnType<typeof planTokens>>[number];
/** Plan for one record. */
interface Planned {
  readonly record: Staged<'tokens'>;
  /** The token as it ends with those that made it. */
  readonly token: ImportedToken;
  readonly plan: Plan;
}

function count({ tally, staging }: Pass, { record, plan }: Planned): void {
  switch (plan.what) {
    case 'add':
      tally.count('tokens', 'created');
      break;
    case 'revoke':
      tally.count('tokens', 'updated');
      break;
    case 'same':
      tally.count('tokens', 'unchanged');
      break;
    case 'leave':
      tally.skip('tokens', plan.reason);
      break;
    case 'refuse':
      staging.reject('tokens', record, plan);
      break;
  }
}

async function write({ services, orgId }: Pass, tx: Tx, planned: readonly Planned[]): Promise<void> {
  const wanted = (what: Plan['what']) => planned.filter(({ plan }) => plan.what === what).map(({ token }) => token);
  await addImportedTokens(tx, services, { orgId, tokens: wanted('add'), origin: operator });
  for (const token of wanted('revoke')) await revokeImportedToken(tx, services, { orgId, token, origin: operator });
}

/** Plans some records. */
async function planBatch(
  { staging, nowMs, keptSinceMs, isWriting }: Pass,
  read: Reader,
  { ends, batch }: { readonly ends: InheritedEnds; readonly batch: readonly Staged<'tokens'>[] },
): Promise<readonly Planned[]> {
  // Users of the file exist by the time that tokens are written.
  const knows = (ids: readonly string[]) =>
    isWriting ? [] : staging.withIds('users', ids).flatMap(({ id }) => id ?? []);
  const stagedTokens = batch.map(({ content }) => content);
  const inherited = await ends.of(read, stagedTokens);
  const tokens = stagedTokens.map((token, place) => {
    const one = inherited[place];
    return one && 'token' in one ? one.token : token;
  });
  const plans = await planTokens(read, { tokens, nowMs, keptSinceMs, knows });
  return batch.flatMap((record, place): readonly Planned[] => {
    const [token, plan, one] = [tokens[place], plans[place], inherited[place]];
    if (!token || !plan || !one) return [];
    return [{ record, token, plan: 'problem' in one ? { what: 'refuse', ...one.problem } : plan }];
  });
}

/** Goes through the tokens of a dump. Rules: CLI-17, CLI-20, CRED-4, CRED-12. */
export async function passTokens(pass: Pass): Promise<void> {
  const ends = new InheritedEnds(pass.staging);
  for (const batch of pass.staging.rows('tokens', atOnce)) {
    const planned = await step(pass, async (read, tx) => {
      const all = await planBatch(pass, read, { ends, batch });
      if (tx) await write(pass, tx, all);
      return all;
    });
    for (const one of planned) count(pass, one);
    pass.advance(batch.length);
  }
}
