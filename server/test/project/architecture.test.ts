import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { apiErrors } from '../../src/base/api-errors.ts';
import { routes } from '../../src/routes.gen.ts';

const src = new URL('../../src/', import.meta.url).pathname;
const root = new URL('../../../', import.meta.url).pathname;

function files(directory: string, ending: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .map((name) => join(directory, name));
}

const sources = files(src, '.ts').filter((name) => !name.endsWith('.test.ts'));
const commandSources = files(join(root, 'cli/src'), '.ts').filter((name) => !name.endsWith('.test.ts'));
const tests = [src, join(root, 'server/test'), join(root, 'cli')].flatMap((directory) => files(directory, '.test.ts'));
const read = (name: string) => readFileSync(name, 'utf8');
const endpointFiles = sources.filter((name) => /export const \w+ = endpoints?\(/.test(read(name)));

/** Rule ids that a text names, ranges such as `PAT-1 to PAT-3` included. */
function namedRules(text: string): Set<string> {
  const named = new Set(text.match(/\b[A-Z]+-\d+\b/g) ?? []);
  for (const [, area, from, to] of text.matchAll(/\b([A-Z]+)-(\d+) to \1-(\d+)\b/g)) {
    for (let number = Number(from); number <= Number(to); number += 1) named.add(`${area}-${number}`);
  }
  return named;
}

const rules = [...read(join(root, 'docs/rules.md')).matchAll(/^- \*\*([A-Z]+-\d+)\*\* /gm)].map(
  (match) => match[1] ?? '',
);

describe('architecture', () => {
  it('is looked at: there are sources, tests, endpoints and rules', () => {
    expect(sources.length).toBeGreaterThan(50);
    expect(tests.length).toBeGreaterThan(10);
    expect(endpointFiles.length).toBeGreaterThan(10);
    expect(rules.length).toBeGreaterThan(400);
  });

  it('every endpoint file has its test beside it', () => {
    const without = endpointFiles.filter((name) => !existsSync(name.replace(/\.ts$/, '.test.ts')));
    expect(without).toEqual([]);
  });

  it('every refusal is used outside the table', () => {
    const used = sources
      .filter((name) => !name.endsWith('/refusals.ts'))
      .map(read)
      .join('\n');
    const unused = Object.keys(apiErrors).filter((name) => !used.includes(`'${name}'`));
    expect(unused).toEqual([]);
  });

  it('every endpoint declares its policy and one success status, beside a 204 that says that there is none (RUN-10, AUTH-56)', () => {
    for (const { method, path, policy, response, isMcp } of routes) {
      expect(policy, path).toBeDefined();
      // A message that is no request has no answer: 202 in the protocol of agents.
      const without = isMcp ? '202' : '204';
      const successes = Object.keys(response).filter((status) => status !== without);
      // Single sign-on sends browsers to the provider and back.
      const expected = path.startsWith('/userAccount/oidc/') ? /^302$/ : /^20[01]$/;
      expect([`${method} ${path}`, successes]).toEqual([`${method} ${path}`, [expect.stringMatching(expected)]]);
    }
    const taken = routes.filter(({ response }) => '202' in response);
    expect(taken.map(({ path }) => path)).toEqual(['/mcp', '/api/v1/mcp']);
    const perhapsNothing = routes.filter(({ response }) => '204' in response);
    expect(perhapsNothing.map(({ method }) => method)).toEqual(perhapsNothing.map(() => 'GET'));
  });

  it('every rule that a comment or a test names exists', () => {
    const known = new Set(rules);
    const areas = new Set(rules.map((rule) => rule.split('-')[0]));
    const unknown = [...sources, ...commandSources, ...tests].flatMap((name) =>
      [...namedRules(read(name))]
        .filter((rule) => areas.has(rule.split('-')[0]) && !known.has(rule))
        .map((rule) => `${name.slice(root.length)}: ${rule}`),
    );
    expect(unknown).toEqual([]);
  });

  it('the rules without a test are the listed ones: the list only gets shorter', async () => {
    const named = new Set(tests.flatMap((name) => [...namedRules(read(name))]));
    const untested = rules.filter((rule) => !named.has(rule));
    const list = `# Rules without a test\n\nEach line is a rule of ../../../../docs/rules.md that no test names yet.\n\n${untested.join('\n')}\n`;
    await expect(list, 'stale: npm run gen writes it').toMatchFileSnapshot('snapshots/untested-rules.md');
  });
});
