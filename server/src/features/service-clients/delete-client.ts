import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import { endClient } from './public.ts';

/** Rule: SERVICE-10. */
export const deleteClient = endpoint({
  method: 'DELETE',
  path: '/service-clients/:clientId',
  operationId: 'deleteServiceClient',
  tag: 'Services',
  summary: 'End a service, and every token that it got',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ clientId: id }),
  response: { 200: messageResponse },
  async handle(services, { caller, write, params: { clientId }, origin }) {
    const { orgId } = caller;
    await write(async (tx) => {
      await endClient(tx, services, { clientId, orgId, actor: caller, origin });
    });
    return { message: 'Service client deleted successfully' };
  },
});
