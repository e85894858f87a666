import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/http/openapi/openapi.ts';
import { routes } from '../../src/routes.gen.ts';
import { type Client, type Json, TestApp } from '../support/test-app.ts';
import { ensureOutsideClients, installMsMax, outsideFile, runOutside } from './outside-client.ts';

const compiler = resolve(import.meta.dirname, '../../../node_modules/@typescript/native/bin/tsc');
const directory = mkdtempSync(join(tmpdir(), 'latchkey-clients-'));

const compilerOptions = {
  strict: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  target: 'es2022',
  module: 'esnext',
  moduleResolution: 'bundler',
  lib: ['es2023', 'dom', 'dom.iterable'],
  types: [],
};

/** A user's program: a token from creation to its end, by a client that has its types from the document. */
const tokenLife = `
import createClient from 'openapi-fetch';
import type { components, paths } from './schema.ts';

declare const process: { readonly argv: readonly string[] };
const [, , baseUrl = '', session = ''] = process.argv;

function as(credential: string) {
  return createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${credential}\` } });
}

const mine = as(session);
const statuses: number[] = [];
const made = await mine.POST('/api/v1/personal-access-tokens', {
  body: { name: 'Nightly report', scopes: ['user:read'], expiryDays: 30 },
});
statuses.push(made.response.status);
if (made.error) throw new Error(made.error.message);
const { accessToken, id } = made.data.token;
// A response that is repeated for an Idempotency-Key has none.
if (accessToken === undefined) throw new Error('no token');

const token = as(accessToken);
const users = await token.GET('/api/v1/users', { params: { query: { page: 1, limit: 5 } } });
statuses.push(users.response.status);
const refused = await token.GET('/api/v1/personal-access-tokens');
statuses.push(refused.response.status);
const code: string | undefined = refused.error?.error.code;

const listed = await mine.GET('/api/v1/personal-access-tokens');
statuses.push(listed.response.status);
const items: readonly components['schemas']['PersonalAccessToken'][] = listed.data?.tokens ?? [];

const revoked = await mine.DELETE('/api/v1/personal-access-tokens/{tokenId}', { params: { path: { tokenId: id } } });
statuses.push(revoked.response.status);
statuses.push((await token.GET('/api/v1/whoami')).response.status);
console.log(JSON.stringify({ statuses, code, names: items.map(({ name }) => name) }));
`;

/** Warnings that are no fault of the document. */
const accepted: Readonly<Record<string, string>> = {
  'tag-description': 'headings say what they are',
  'operation-4xx-response': 'what is open and takes no input refuses nothing',
  'no-ambiguous-paths': 'addresses of the earlier API, whose ids are never the word in their place',
};

describe('clients that are generated of the OpenAPI document (FIT-125)', () => {
  let app: TestApp;
  let admin: Client;
  let problems: readonly Json[];

  beforeAll(async () => {
    ensureOutsideClients();
    app = await TestApp.start();
    admin = await app.setUp();
    const document = join(directory, 'openapi.json');
    writeFileSync(document, JSON.stringify(openApiDocument(routes)));
    writeFileSync(join(directory, 'package.json'), JSON.stringify({ type: 'module' }));
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['**/*.ts'] }));
    writeFileSync(join(directory, 'token-life.ts'), tokenLife);
    mkdirSync(join(directory, 'node_modules'));
    symlinkSync(outsideFile('openapi-fetch'), join(directory, 'node_modules/openapi-fetch'));
    symlinkSync(outsideFile('openapi-typescript-helpers'), join(directory, 'node_modules/openapi-typescript-helpers'));
    const generator = join(import.meta.dirname, 'generate-clients.mjs');
    const { code, stdout, stderr } = await runOutside(generator, [outsideFile('.'), document, directory]);
    if (code !== 0) throw new Error(`${stdout}${stderr}`);
    problems = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  }, installMsMax);
  afterAll(async () => {
    rmSync(directory, { recursive: true, force: true });
    await app.close();
  });

  it('redocly finds nothing in it that matters', () => {
    expect(problems.filter(({ rule }) => !(rule in accepted))).toEqual([]);
    expect(problems.filter(({ severity }) => severity !== 'warn')).toEqual([]);
  });

  it('openapi-typescript, hey-api and orval generate clients that compile strict, with a program that uses one', async () => {
    expect(await runOutside(compiler, ['-p', directory])).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('openapi-fetch lives the life of a token with these types (PAT-1, PAT-16)', async () => {
    const program = join(directory, 'token-life.ts');
    const { stdout, stderr } = await runOutside(program, [app.url, admin.credential ?? '']);
    expect(JSON.parse(stdout || JSON.stringify(stderr))).toEqual({
      statuses: [201, 200, 403, 200, 200, 401],
      code: 'INSUFFICIENT_SCOPE',
      names: ['Nightly report'],
    });
  });
});
