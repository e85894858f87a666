import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { takeNumbers } from '../../db/counters.ts';
import { endpoint } from '../../http/endpoint.ts';

/** Rules: CONFIG-12, CONFIG-25 to CONFIG-27, NODE-5, SERVICE-6. */
export const reloadConfig = endpoint({
  method: 'POST',
  path: '/users/updateAppConfig',
  tag: 'Services',
  summary: 'Reload the configuration; a wrong one is rejected, and the present one stays',
  errors: [400],
  policy: { who: 'service', scope: 'FETCH_CONFIG', writesBy: 'scopedToken' },
  boundedBy: 'trusted service',
  response: {
    200: z.object({
      message: z.string(),
      config: z.object({ authBackend: z.string(), communicationBackend: z.string(), frontendUrl: z.string() }),
    }),
  },
  async handle(services, { caller, origin }) {
    const { authBackendUrl, communicationBackendUrl, frontendUrl } = services.reloadConfig();
    const record = { action: 'config.reloaded', orgId: null, actor: caller, subjectId: null, origin } as const;
    await services.db.transaction(async (tx) => {
      // The other nodes see the counter change, and reload their configuration.
      if (services.db.isShared) await takeNumbers(tx, 'reload');
      await appendAudit(tx, services, record);
    });
    return {
      message: 'Configuration updated successfully',
      config: { authBackend: authBackendUrl, communicationBackend: communicationBackendUrl, frontendUrl },
    };
  },
});
