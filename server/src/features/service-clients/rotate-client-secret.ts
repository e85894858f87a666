import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { rotateSecret } from './public.ts';
import { rotation } from './service-client.ts';

/** Rules: LEAVER-7, LEAVER-8. */
export const rotateClientSecret = endpoint({
  method: 'POST',
  path: '/service-clients/:clientId/rotate',
  operationId: 'rotateServiceClientSecret',
  tag: 'Services',
  summary:
    'Create a new secret for a service, shown in this response only; the earlier one ends at once, or after a grace period',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ clientId: id }),
  body: rotation,
  response: { 200: z.object({ clientSecret: z.string() }) },
  async handle(services, { caller, write, params: { clientId }, body, origin }) {
    const graceSeconds = body?.graceSeconds ?? 0;
    return write(async (tx) => {
      return rotateSecret(tx, services, { clientId, graceSeconds, actor: caller, origin });
    });
  },
});
