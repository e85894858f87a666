import { ApiError } from '../../base/errors.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { Tables } from '../../db/schema/tables.ts';
import { OidcError, type OidcSettings, oidcRedirectUri } from '../../oidc/oidc.ts';
import type { Services } from '../../services.ts';
import { dependsOn } from '../sign-in/public.ts';
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

/** Returns when the settings that decide who can sign in were last changed. Rule: FIT-7. */
export function changedAt(
  wanted: Omit<OidcSettings, 'changedAtMs'>,
  stored: OidcSettings | null,
  nowMs: number,
): number | null {
  const isSame =
    stored?.issuer === wanted.issuer &&
    stored.clientId === wanted.clientId &&
    stored.clientSecret.expose() === wanted.clientSecret.expose() &&
    stored.emailTrust === wanted.emailTrust;
  return isSame ? stored.changedAtMs : nowMs;
}

/** Whether users can sign in by the stored provider alone; those of the configuration are not stored. */
async function needsStoredOidc(read: Reader, { config }: Pick<Services, 'config'>, orgId: string): Promise<boolean> {
  if (config.oidc) return false;
  const hasMail = config.mailServer !== null || (await selectSetting(read, 'smtp')) !== null;
  return dependsOn(read, orgId, { method: 'oidc', lacking: hasMail ? null : 'otp' });
}

/** The stored settings of single sign-on, and those that replace them. */
interface Replacement {
  readonly stored: OidcSettings | null;
  readonly wanted: OidcSettings;
}

/**
 * Throws `settingNeeded` where users depend on the stored provider, and another one, another client or fewer verified
 * addresses are to replace it. Rule: FIT-10.
 */
export async function keepProvider(
  tx: Tx,
  services: Pick<Services, 'config'>,
  { stored, wanted, orgId }: Replacement & { readonly orgId: string },
): Promise<void> {
  if (!stored) return;
  const isSame = stored.issuer === wanted.issuer && stored.clientId === wanted.clientId;
  const trustsLess = stored.emailTrust === 'issuer' && wanted.emailTrust === 'claim';
  if ((!isSame || trustsLess) && (await needsStoredOidc(tx, services, orgId))) throw new ApiError('settingNeeded');
}

/** Throws `oidcFailed` where users depend on the stored provider, and it refuses the new client secret. Rule: FIT-10. */
export async function requireGoodSecret(
  services: Pick<Services, 'config' | 'db' | 'oidc'>,
  { stored, wanted, orgId }: Replacement & { readonly orgId: string },
): Promise<void> {
  const { config, db, oidc } = services;
  if (!stored || stored.clientSecret.expose() === wanted.clientSecret.expose()) return;
  if (!(await needsStoredOidc(db.read, services, orgId))) return;
  try {
    const client = await oidc.open({ ...wanted, outboundNetworks: config.outboundNetworks });
    await client.checkSecret(oidcRedirectUri(config));
  } catch (error) {
    if (!(error instanceof OidcError)) throw error;
    throw new ApiError('oidcFailed', { params: { said: error.message }, cause: error.message });
  }
}
