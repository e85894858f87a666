import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { OidcError, oidcRedirectUri, type SecretCheck } from '../../oidc/oidc.ts';
import { hiddenReason } from '../../outbound/address-guard.ts';

function textOf({ unprovedBecause }: SecretCheck): string {
  if (unprovedBecause === null) return 'The provider answers, and accepts the client secret';
  return (
    `The provider answers. Whether it accepts the client secret could not be proved (${unprovedBecause}): ` +
    'sign in by single sign-on once'
  );
}

/** Rules: AUDIT-4, AUTH-48, FIT-3. */
export const testOidcSettings = endpoint({
  method: 'POST',
  path: '/settings/oidc/test',
  tag: 'Settings',
  summary:
    'Fetch the metadata of the provider of single sign-on, ask it for a token with a made-up code, and report what is wrong',
  errors: [400, 502],
  policy: { who: 'admin', scope: 'org:admin' },
  response: {
    200: z.object({
      message: z.string(),
      clientSecretProved: z
        .boolean()
        .describe('false: the provider gives a made-up secret the same answer, so the secret may be wrong'),
    }),
  },
  async handle(services, { caller, write, origin }) {
    const { oidc, limits } = services;
    const { orgId, userId } = caller;
    await limits.count('testMail', userId);
    const client = await oidc.client();
    if (!client) throw new ApiError('oidcNotConfigured');
    await write(async () => {});
    const record = { action: 'settings.oidc-tested', orgId, actor: caller, subjectId: null, origin } as const;
    const note = (outcome: 'success' | 'failure') => services.recordAttempt({ ...record, outcome });
    let checked: SecretCheck;
    try {
      checked = await client.checkSecret(oidcRedirectUri(services.config));
    } catch (error) {
      await note('failure');
      if (!(error instanceof OidcError)) throw error;
      const cause = hiddenReason(error) ?? error.message;
      throw new ApiError('oidcFailed', { params: { said: error.message }, cause });
    }
    await note('success');
    return { message: textOf(checked), clientSecretProved: checked.unprovedBecause === null };
  },
});
