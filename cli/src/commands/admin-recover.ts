import { command } from '../command.ts';
import { flag, storeOptions, text } from '../options.ts';

/** Rules: CLI-11, FIT-107. */
export const adminRecover = command({
  name: 'admin recover',
  summary: 'Print a link with which an administrator sets a new password',
  details:
    'Use it when no administrator can sign in: a forgotten password, a mail server that does not work. The link works once, for ' +
    '20 minutes, and is printed here only. Setting a password with it ends the sessions of that administrator.',
  examples: ['admin recover', 'admin recover --email ada@example.com', 'admin recover --reset-sign-in --json'],
  options: {
    ...storeOptions,
    email: text('address', 'of which administrator; without it the first one'),
    resetSignIn: flag('reset sign-in to a password alone, for all users'),
  },
  async run({ dataDir, email, resetSignIn }, context) {
    const { linkConfig, operator, withStore } = await import('../operator-store.ts');
    const { recoverAdministrator } = await import('../../../server/src/operator/recovery/public.ts');
    const { normalizeEmail } = await import('../../../server/src/text/email-address.ts');
    const { operatorError: refused, requireOrganization } = await import('../operator-errors.ts');
    const config = linkConfig(context, dataDir);
    const wanted = email === null ? null : (normalizeEmail(email) ?? email);
    const recovery = await withStore(context, dataDir, async (services) => {
      await requireOrganization(services.db.read);
      return recoverAdministrator({ ...services, config }, { email: wanted, resetSignIn, origin: operator });
    });
    if (typeof recovery === 'string') throw refused(recovery);
    const text = `Open this link as ${recovery.email}, once, until ${recovery.expiresAt}:\n${recovery.link}`;
    return { data: { recovery }, text };
  },
});
