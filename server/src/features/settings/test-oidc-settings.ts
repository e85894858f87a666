import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import { OidcError } from '../../oidc/oidc.ts';
import { hiddenReason } from '../../outbound/address-guard.ts';

/** Rules: AUDIT-4, AUTH-48. */
export const testOidcSettings = endpoint({
  method: 'POST',
  path: '/settings/oidc/test',
  tag: 'Settings',
  summary: 'Fetch the metadata of the provider of single sign-on, and report what is wrong',
  policy: { who: 'admin', scope: 'org:admin' },
  response: { 200: messageResponse },
  async handle(services, { caller, write, origin }) {
    const { oidc, limits } = services;
    const { orgId, userId } = caller;
    await limits.count('testMail', userId);
    const client = await oidc.client();
    if (!client) throw new ApiError('oidcNotConfigured');
    await write(async () => {});
    const record = { action: 'settings.oidc-tested', orgId, actor: caller, subjectId: null, origin } as const;
    const note = (outcome: 'success' | 'failure') => services.recordAttempt({ ...record, outcome });
    try {
      await client.check();
    } catch (error) {
      await note('failure');
      if (!(error instanceof OidcError)) throw error;
      const cause = hiddenReason(error) ?? error.message;
      throw new ApiError('oidcFailed', { params: { said: error.message }, cause });
    }
    await note('success');
    return { message: 'The provider answers' };
  },
});
