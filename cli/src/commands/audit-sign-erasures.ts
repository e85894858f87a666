import { command } from '../command.ts';
import { CommandError } from '../failures.ts';
import { flag, storeOptions } from '../options.ts';

const shownMax = 20;

/** Rule: AUDIT-20. */
export const auditSignErasures = command({
  name: 'audit sign-erasures',
  summary: 'Sign the erasures that an earlier release recorded, after a look at each',
  details:
    'An erasure is signed with the encryption key when it is recorded; audit verify reports one that is not. Those of earlier ' +
    'releases are not, and neither is one that someone else wrote into the store. Lists them with number, time and user, and ' +
    'asks at a terminal: sign only what you erased. One whose user is not erased is never signed. The signing is recorded. It may run while a server runs.',
  examples: ['audit sign-erasures', 'audit sign-erasures --yes --json'],
  options: { ...storeOptions, yes: flag('do not ask') },
  async run({ dataDir, yes }, context) {
    const { operator, operatorConfig, withConfiguredStore } = await import('../operator-store.ts');
    const { presentKey } = await import('../present-key.ts');
    const { findUnsignedErasures, signErasures } = await import('../../../server/src/operator/erasure/public.ts');
    const { toTimestamp } = await import('../../../server/src/base/clock.ts');
    const config = operatorConfig(context, dataDir);
    const encryption = presentKey(config);
    if (!encryption) {
      throw new CommandError('failed', 'ENCRYPTION_KEY is missing: erasures are signed with that of the servers');
    }
    return withConfiguredStore(config, async (services) => {
      const found = await findUnsignedErasures(services.db.read, encryption);
      const signable = found.filter(({ isErased }) => isErased);
      const left = found.filter(({ isErased }) => !isErased).map(({ sequence }) => sequence);
      if (signable.length > 0 && !yes) {
        const lines = signable
          .slice(0, shownMax)
          .map(({ sequence, occurredAt, userId }) => `record ${sequence}, ${toTimestamp(occurredAt)}, user ${userId}`);
        const more = signable.length > shownMax ? [`and ${signable.length - shownMax} more`] : [];
        const response = await context.ask([...lines, ...more, 'Type yes if you erased all of these: '].join('\n'));
        if (response?.trim() !== 'yes')
          throw new CommandError('refused', 'Nothing was signed: confirm it with --yes, or at a terminal');
      }
      const sequences = signable.map(({ sequence }) => sequence);
      const signed = await signErasures({ ...services, encryption }, { sequences, origin: operator });
      const words =
        left.length > 0 ? `\nNot signed, because their users are not erased: records ${left.join(', ')}` : '';
      return { data: { signed, notErased: left }, text: `Erasures that were signed: ${signed}${words}` };
    });
  },
});
