// The ceiling: Fastify answering the user record through a response schema, no logger, no authentication, no store.
import { recordFromEnvironment, recordPath, requireFromServer, schemaFor, serve } from './record-route.mjs';

const fastify = requireFromServer('fastify');
const record = recordFromEnvironment();

const app = fastify({ logger: false });
app.get(recordPath, { schema: { response: { 200: schemaFor(record) } } }, async () => record);
await serve(app);
