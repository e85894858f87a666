import type { Tx } from '../../db/database.ts';
import type { Tables } from '../../db/schema/tables.ts';
import { selectSetting, selectSettingMakers, upsertSetting } from './setting-store.ts';

/**
 * Stores a setting with who set it and who gave its secret. Keeping the secret of someone who is no administrator any more
 * confirms it: the setting was looked at. Rule: LEAVER-10.
 * @param wish `earlier`: the stored content that the wish was made of, `null` without any. `isSecretKept`: whether the stored
 * secret stays; otherwise it comes from `by`, or there is none
 * @returns `false` where the stored content is no longer `earlier`; then nothing is stored
 */
export async function storeSetting(
  tx: Tx,
  input: {
    readonly name: Tables['settings']['name'];
    readonly content: string;
    readonly by: string;
    readonly isSecretKept: boolean;
    readonly earlier: string | null;
    readonly nowMs: number;
  },
): Promise<boolean> {
  const { name, content, by, isSecretKept, nowMs } = input;
  // A concurrent request was faster: the kept values, and the audit record, have to refer to its settings.
  if ((await selectSetting(tx, name)) !== input.earlier) return false;
  const earlier = isSecretKept ? await selectSettingMakers(tx, name) : undefined;
  const isVouchedFor = earlier !== undefined && (earlier.confirmedBy !== null || earlier.areMakersAdministrators === 0);
  await upsertSetting(tx, {
    name,
    content,
    updated_by: by,
    updated_at: nowMs,
    secret_by: earlier ? (earlier.secretBy ?? earlier.updatedBy) : null,
    confirmed_by: isVouchedFor ? by : null,
  });
  return true;
}
