// Lints an OpenAPI document and generates clients of it, all in one process, which runs on the Node.js of outside clients:
// `node generate-clients.mjs <node_modules> <document> <output>`. Prints what the linter finds as one line of JSON.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , modules = '', document = '', output = ''] = process.argv;

function load(/** @type {string} */ path) {
  return import(pathToFileURL(join(modules, path)).href);
}

async function lint() {
  const { createConfig, lint: lintDocument } = await load('@redocly/openapi-core/lib/index.js');
  const config = await createConfig({ extends: ['recommended'] });
  /** @type {readonly { ruleId: string, severity: string, message: string, location: readonly { pointer: string }[] }[]} */
  const problems = await lintDocument({ ref: document, config });
  return problems.map(({ ruleId, severity, message, location }) => ({
    rule: ruleId,
    severity,
    message,
    at: location[0]?.pointer,
  }));
}

async function generate() {
  const { default: openapiTs, astToString } = await load('openapi-typescript/dist/index.mjs');
  writeFileSync(join(output, 'schema.ts'), astToString(await openapiTs(pathToFileURL(document))));

  const { createClient } = await load('@hey-api/openapi-ts/dist/index.mjs');
  const plugins = ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'];
  await createClient({ input: document, output: join(output, 'hey-api'), plugins, logs: { level: 'silent' } });

  const { generate: orval } = await load('orval/dist/index.mjs');
  await orval({ input: document, output: { target: join(output, 'orval.ts'), client: 'fetch', mode: 'single' } });
}

const problems = await lint();
await generate();
process.stdout.write(`\n${JSON.stringify(problems)}\n`);
