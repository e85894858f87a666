// npm run connector: a connector backend with teams in memory, for development.
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startConnectorBackend } from './connector/backend.mjs';
import { codeOf, exitWith, StepError } from './steps.mjs';

const help = `Usage: npm run connector -- [options]

A connector backend that keeps its teams in memory, to be used as CONNECTOR_BACKEND_URL of a Latchkey on this machine.

  --port <port>     where it listens on 127.0.0.1 (3100)
  --jwks <address>  verifies tokens by these public keys (http://127.0.0.1:3000/.well-known/jwks.json)
  --secret <text>   verifies tokens by this shared secret instead, that of JWT_ALGORITHM=HS256
  --users <file>    people to begin with: a JSON list of { userId, orgId, name?, email?, isAdmin? }
  --help            this text

It also learns of everybody who shows a good token. Administrators are those whom --users calls so: tokens do not tell.
`;

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        port: { type: 'string', default: '3100' },
        jwks: { type: 'string' },
        secret: { type: 'string' },
        users: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
    return values;
  } catch (error) {
    throw new StepError(
      `${String(error instanceof Error ? error.message : error).split('.')[0]}; see npm run connector -- --help`,
    );
  }
}

function readPeople(/** @type {string | undefined} */ file) {
  if (file === undefined) return [];
  let people;
  try {
    people = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new StepError(`${file} cannot be read as JSON (${codeOf(error) ?? 'not valid'})`);
  }
  const isPerson = (/** @type {any} */ one) => typeof one?.userId === 'string' && typeof one.orgId === 'string';
  if (Array.isArray(people) && people.every(isPerson)) return people;
  throw new StepError(`${file} must be a JSON list of { userId, orgId, name?, email?, isAdmin? }`);
}

async function main() {
  const { port, jwks, secret, users, help: isHelp } = readOptions();
  if (isHelp) {
    process.stdout.write(help);
    return;
  }
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) throw new StepError('--port must be a number up to 65535');
  if (jwks !== undefined && secret !== undefined) throw new StepError('--jwks and --secret exclude each other');
  const jwksUrl = jwks ?? 'http://127.0.0.1:3000/.well-known/jwks.json';
  if (!URL.canParse(jwksUrl)) throw new StepError('--jwks must be an address');
  const backend = await startConnectorBackend({
    port: Number(port),
    jwksUrl,
    ...(secret === undefined ? {} : { secret }),
    people: readPeople(users),
  });
  process.stdout.write(`connector backend: ${backend.url}\n`);
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void backend.close());
}

main().catch((error) => {
  exitWith(codeOf(error) === 'EADDRINUSE' ? new StepError('The port is in use: give another --port') : error);
});
