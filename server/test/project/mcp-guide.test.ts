import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeTools, type Tool } from '../../src/mcp/tool.ts';
import { routes } from '../../src/routes.gen.ts';

const guide = join(import.meta.dirname, '../../../docs/guides/mcp.md');
const table = /(<!-- tools: [^\n]+ -->\n)[\s\S]*(<!-- end of tools -->)/;
const who: Readonly<Record<string, string>> = {
  member: 'any user',
  admin: 'an administrator',
  adminOrSelf: 'the user concerned, or an administrator',
};

function rowOf({ name, declaration, endpoint }: Tool): string {
  const { policy, summary } = endpoint;
  const scope = 'scope' in policy ? `\`${policy.scope}\`` : 'any';
  const orNone = 'selfParam' in policy ? ', for itself none' : '';
  const [first = ''] = (declaration.description ?? summary).split(/\.(?: |$)/);
  return `| \`${name}\` | ${first.replaceAll('|', '\\|')} | ${scope}${orNone} | ${who[policy.who] ?? policy.who} |`;
}

it('the guide lists every tool as it is declared: what it does, its scope, and for whom (MCP-5, MCP-6)', async () => {
  const rows = [...makeTools(routes).values()].map(rowOf).sort();
  expect(rows.length).toBeGreaterThan(20);
  const lines = ['', '| Tool | What it does | Scope | Who |', '|---|---|---|---|', ...rows, '', ''];
  const text = readFileSync(guide, 'utf8');
  expect(text).toMatch(table);
  // A function, so that no $ of the table is taken for a group.
  const wanted = text.replace(table, (_whole, before: string, after: string) => before + lines.join('\n') + after);
  await expect(wanted, 'stale: npm run gen writes it').toMatchFileSnapshot(guide);
});
