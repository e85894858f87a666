// Better Auth with its API-key plugin, on the same SQLite binding and the same Fastify as Latchkey.
//
// What was chosen, and why:
// - `auth.api.verifyApiKey` is the documented way for a server to check a key. It is called in process: no HTTP hop.
// - The keys are in the database, the plugin's default. Its `secondary-storage` mode reads them from a cache
//   instead (the docs mean Redis), which is another promise than "the same SQLite": a process-local map isn't shared.
// - SQLite in WAL mode with `synchronous = NORMAL`, which the SQLite manual advises with WAL. It matters: a verification
//   writes the key's row (`lastRequest`, `updatedAt`), and FULL would wait for the disk each time.
// - Rate limiting off, both the plugin's (10 requests a day by default) and the router's.
// - `deferUpdates` with a background handler, as the docs advise for latency. In database mode it moves only the
//   clean-up of expired keys out of the request.
// - Keys stay hashed (the default, strongly recommended), telemetry and logger are off, `NODE_ENV` is `production`.
// - The tables and their indexes (one on the hashed key) are made by its own migration.
// - The user record itself is answered from memory: only the verification is measured. Latchkey reads its own.
import { join } from 'node:path';
import { apiKey } from '@better-auth/api-key';
import { betterAuth } from 'better-auth';
import { getMigrations } from 'better-auth/db/migration';
import { recordFromEnvironment, recordPath, requireFromServer, schemaFor, serve } from './record-route.mjs';

/** @type {typeof import('fastify').fastify} */
const fastify = requireFromServer('fastify');
const Database = requireFromServer('better-sqlite3');

function openDatabase() {
  const database = new Database(join(process.env['DATA_DIR'] ?? '', 'better-auth.db'));
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = NORMAL');
  return database;
}

function authOptions(/** @type {import('better-sqlite3').Database} */ database) {
  return {
    database,
    baseURL: 'http://127.0.0.1',
    secret: 'a secret of the benchmark, long enough to be accepted',
    emailAndPassword: { enabled: true },
    plugins: [apiKey({ rateLimit: { enabled: false }, deferUpdates: true })],
    rateLimit: { enabled: false },
    advanced: {
      backgroundTasks: { handler: (/** @type {Promise<unknown>} */ promise) => promise.catch(console.error) },
    },
    telemetry: { enabled: false },
    logger: { disabled: true },
  };
}

async function issueKey(/** @type {ReturnType<typeof betterAuth>} */ auth) {
  const { user } = await auth.api.signUpEmail({
    body: { email: 'bench@example.com', name: 'Bench', password: 'Correct-horse-7-battery' },
  });
  const { key } = await auth.api.createApiKey({ body: { name: 'bench', userId: user.id } });
  return key;
}

const record = recordFromEnvironment();
const options = authOptions(openDatabase());
const { runMigrations } = await getMigrations(options);
await runMigrations();
const auth = betterAuth(options);
const key = await issueKey(auth);

const app = fastify({ logger: false });
app.get(
  recordPath,
  { schema: { response: { 200: schemaFor(record) } } },
  async (request, /** @type {import('fastify').FastifyReply} */ reply) => {
    const { valid } = await auth.api.verifyApiKey({ body: { key: request.headers['x-api-key'] } });
    if (valid) return record;
    return reply.status(401).send({ message: 'Invalid API key' });
  },
);
await serve(app, { 'x-api-key': key });
