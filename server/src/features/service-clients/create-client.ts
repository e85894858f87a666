import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { idResponse, notRepeated, timestamp } from '../../http/schemas.ts';
import { registerClient } from './public.ts';
import { clientInput } from './service-client.ts';

/** Rules: SERVICE-7, SERVICE-8, SERVICE-18. */
export const createClient = endpoint({
  method: 'POST',
  path: '/service-clients',
  operationId: 'createServiceClient',
  tag: 'Services',
  summary: 'Register a service, which gets scoped tokens at oauth2/token; its secret is shown in this response only',
  policy: { who: 'admin', scope: 'org:admin' },
  idempotency: { secrets: ['clientSecret'] },
  body: clientInput,
  response: {
    201: z.object({
      clientId: idResponse,
      clientSecret: z.string().optional().describe(notRepeated),
      name: z.string(),
      scopes: z.array(z.string()),
      createdAt: timestamp,
    }),
  },
  async handle(services, { caller, write, remember, body, origin }) {
    const { orgId } = caller;
    return write(async (tx) => {
      return remember(tx, await registerClient(tx, services, { ...body, orgId, actor: caller, origin }));
    });
  },
});
