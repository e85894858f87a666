import type { Tx } from '../../../server/src/db/database.ts';
import {
  addImportedTokens,
  planTokens,
  revokeImportedToken,
} from '../../../server/src/features/imported-tokens/contract.ts';
import { operator } from '../operator-store.ts';
import { atOnce, type Pass, step } from './pass.ts';
import type { Staged } from './staging.ts';

type Plan = Awaited<ReturnType<typeof planTokens>>[number];
/** What becomes of one record. */
interface Planned {
  readonly record: Staged<'tokens'>;
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
  const wanted = (what: Plan['what']) =>
    planned.filter(({ plan }) => plan.what === what).map(({ record }) => record.content);
  await addImportedTokens(tx, services, { orgId, tokens: wanted('add'), origin: operator });
  for (const token of wanted('revoke')) await revokeImportedToken(tx, services, { orgId, token, origin: operator });
}

/** Goes through the tokens of a dump. Rules: CLI-17, CLI-20. */
export async function passTokens(pass: Pass): Promise<void> {
  const { staging, nowMs, keptSinceMs, isWriting } = pass;
  // Whoever comes with the file is here by the time that tokens are written.
  const knows = (ids: readonly string[]) =>
    isWriting ? [] : staging.withIds('users', ids).flatMap(({ id }) => id ?? []);
  for (const batch of staging.batches('tokens', atOnce)) {
    const planned = await step(pass, async (read, tx) => {
      const tokens = batch.map(({ content }) => content);
      const plans = await planTokens(read, { tokens, nowMs, keptSinceMs, knows });
      const all = batch.flatMap((record, place): readonly Planned[] => {
        const plan = plans[place];
        return plan ? [{ record, plan }] : [];
      });
      if (tx) await write(pass, tx, all);
      return all;
    });
    for (const one of planned) count(pass, one);
    pass.advance(batch.length);
  }
}
