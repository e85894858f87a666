import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { listQuery } from '../../http/schemas.ts';
import { listClients } from './public.ts';
import { clientRecord } from './service-client.ts';

/** Rule: SERVICE-9. */
export const listServiceClients = endpoint({
  method: 'GET',
  path: '/service-clients',
  tag: 'Services',
  summary: 'List the registered services, without their secrets',
  policy: { who: 'admin', scope: 'org:admin' },
  tool: { name: 'list_service_clients', title: 'List service clients' },
  query: listQuery({}),
  response: { 200: z.object({ clients: z.array(clientRecord) }) },
  async handle({ db, clock }) {
    return { clients: await listClients(db.read, clock.now()) };
  },
});
