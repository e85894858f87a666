import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { auditFaults } from '../../src/audit-log/verify-audit.ts';
import { apiErrors } from '../../src/base/api-errors.ts';
import { type VariableName, variables } from '../../src/config/config.ts';
import { createMetrics } from '../../src/metrics/metrics.ts';
import { routes } from '../../src/routes.gen.ts';
import {
  codeIn,
  documents,
  documentText,
  filesBelow,
  root,
  rowsOf,
  sectionOf,
  statementsOf,
} from '../support/documents.ts';

const operate = 'docs/guides/operate.md';
const command = 'docs/guides/command.md';
const fileText = (path: string) => readFileSync(join(root, path), 'utf8');
const sources = filesBelow(['server/src', 'cli/src'], ['.ts']).filter((path) => !path.endsWith('.test.ts'));
/** The source of the product, with `…` for the parts of templates, and strings of several lines joined. */
const source = sources
  .map((path) =>
    fileText(path)
      .replace(/\$\{[^}]*\}/g, '…')
      .replace(/['`] \+\n\s*['`]/g, ''),
  )
  .join('\n');

/** A value as it is written in a table. */
const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

describe('the variables', () => {
  const rows = rowsOf(sectionOf('README.md', '## Configuration')).map(
    ([name = '', otherwise = '', meaning = '']) => [codeIn(name)[0] as VariableName, otherwise, meaning] as const,
  );
  /** The default of a variable; `undefined` if it has none. */
  const defaultOf = (name: VariableName) => variables.shape[name].safeParse(undefined).data;

  it.each(rows)('%s has the default %s', (name, otherwise) => {
    const value = defaultOf(name);
    const computed = /^(?:unset|none|every scope|see |a generated key|`BASE_URL`|`http:)/;
    const said = Array.isArray(value) && value.length === 0 ? 'none' : `\`${textOf(value)}\``;
    expect(value === undefined ? computed.test(otherwise) : otherwise === said).toBe(true);
  });

  it.each(rows.filter(([, , meaning]) => / to [\d,]+ days/.test(meaning)))(
    '%s takes the days it says',
    (name, _, meaning) => {
      const [, min = 0, max = 0] = (/([\d,]+) to ([\d,]+) days/.exec(meaning) ?? []).map((digits) =>
        Number(digits.replace(',', '')),
      );
      const takes = (days: number) => variables.shape[name].safeParse(String(days)).success;
      expect([min - 1, min, max, max + 1].map(takes)).toEqual([false, true, true, false]);
    },
  );

  it('have the defaults that the other documents say', () => {
    const said = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/`([A-Z][A-Z_]+)`\s\((\d+)\)/g)].map(([, name, value]) => ({ path, name, value })),
    );
    expect(said.length).toBeGreaterThan(4);
    expect(said.filter(({ name, value }) => textOf(defaultOf(name as VariableName)) !== value)).toEqual([]);
  });

  it('are the only ones that the documents name', () => {
    const known = new Set(variables.keyof().options.flatMap((name) => [name, `${name}_FILE`]));
    const ofOthers =
      /^(?:LATCHKEY_|NODE_|PATH$|CONFIG_FILE$|SQLITE_TMPDIR$|CLIENT_|SIGNED_IN$|TOKEN_ID$|WEBHOOK_SECRET$)/;
    const given = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/(?<![\w-])([A-Z]+_[A-Z_]*[A-Z])(?==)/g)].map(([, name = '']) => ({ path, name })),
    );
    expect(given.length).toBeGreaterThan(20);
    expect(given.filter(({ name }) => !known.has(name) && !ofOthers.test(name))).toEqual([]);
  });
});

describe('errors', () => {
  it('are in docs/api-design.md by status and code, and no others', () => {
    const rows = rowsOf(sectionOf('docs/api-design.md', '## Errors')).map(
      ([status, code = '']) => `${status} ${codeIn(code)[0]}`,
    );
    const known = Object.values(apiErrors).map(({ status, code }) => `${status} ${code}`);
    expect([...new Set(rows)].sort()).toEqual([...new Set(known)].sort());
    expect(rows).toHaveLength(new Set(rows).size);
  });

  it('that stop the start are what the operating guide quotes', () => {
    const quoted = rowsOf(sectionOf(operate, '## When it does not start')).flatMap(([message = '']) => codeIn(message));
    expect(quoted.length).toBeGreaterThan(20);
    const parts = quoted.flatMap((message) =>
      message
        .split(/<[\w<>-]+>|…|"|: it |(?<=is) not valid/)
        .map((part) => part.trim())
        .filter((part) => part.length > 7),
    );
    const isServerMessage = (part: string) =>
      source.includes(part) || part.split(/\b[A-Z_]{4,}\b/).every((piece) => source.includes(piece.trim()));
    expect(parts.filter((part) => !isServerMessage(part))).toEqual([]);
  });

  it('and messages that are quoted elsewhere are those of the product', () => {
    const quotes = documents
      .filter(({ path }) => path.startsWith('docs/guides/'))
      .flatMap(({ path, text }) => codeIn(text).map((quote) => ({ path, quote })))
      .filter(
        ({ quote }) =>
          /^…? ?[A-Z]?[a-z]+(?: [a-z]+){3}[a-zA-Z_ ,.:<>…"-]*$/.test(quote) && !quote.startsWith('latchkey '),
      )
      .filter(({ quote }) => !quote.startsWith('Cannot read properties of null'));
    expect(quotes.length).toBeGreaterThan(8);
    const partsOf = (quote: string) => quote.split(/…|<\w+>/).map((part) => part.trim());
    // A message may be made of a name and the rest.
    const isServerMessage = (part: string) =>
      source.includes(part) ||
      [...part.matchAll(/ /g)].some(
        ({ index }) => index > 8 && source.includes(part.slice(0, index)) && source.includes(part.slice(index)),
      );
    expect(quotes.filter(({ quote }) => !partsOf(quote).every(isServerMessage))).toEqual([]);
  });

  it('of agents are what their guide quotes', () => {
    const texts = rowsOf(sectionOf('docs/guides/mcp.md', '## 5. Troubleshooting')).flatMap(([symptom = '']) =>
      codeIn(symptom),
    );
    const parts = texts
      .flatMap((text) =>
        text
          .replace('latchkey: ', '')
          .split('…')
          .map((part) => part.trim()),
      )
      .filter((part) => part.length > 6);
    expect(parts.length).toBeGreaterThan(6);
    expect(parts.filter((part) => !source.includes(part))).toEqual([]);
  });
});

describe('tables of the guides', () => {
  it('name every metric, and the words of its labels', async () => {
    const rows = rowsOf(sectionOf(operate, '## Metrics'));
    const named = rows.flatMap(([name = '']) => codeIn(name).map((code) => code.replace(/\{.*/, '')));
    const { text } = await createMetrics().expose();
    const exposed = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name = '']) => name);
    const own = exposed.filter((name) => !/^latchkey_(?:process|nodejs)_/.test(name));
    expect(named.filter((name) => !name.endsWith('…')).sort()).toEqual(own.sort());
    const labels = rows.flatMap(([, meaning = '']) => codeIn(meaning)).filter((word) => !word.includes('.'));
    expect(labels.filter((word) => !source.includes(`'${word}'`) && !source.includes(`${word}:`))).toEqual([]);
  });

  it('name every fault of the audit log', () => {
    const named = rowsOf(
      sectionOf(command, '## `latchkey audit verify`, `sign-erasures`, `export`, `archive`'),
    ).flatMap(([fault = '']) => codeIn(fault));
    expect(named.sort()).toEqual(Object.keys(auditFaults).sort());
  });

  it('name actions that the audit log records', () => {
    const file = /\.(?:ts|mjs|json|jsonl|md|db|js|service|yaml|txt|csv|lkb|partial|next|toml|lock|com|net|org|id|gen)$/;
    const named = documents
      .filter(({ path }) => path.startsWith('docs/guides/'))
      .flatMap(({ path, text }) => codeIn(text).map((action) => ({ path, action })))
      .filter(
        ({ action }) =>
          /^[a-z]+(?:-[a-z]+)*\.[a-z]+(?:-[a-z]+)*$/.test(action) &&
          !/^(?:r|error|moved|latchkey|entity-events)\./.test(action) &&
          !file.test(action),
      );
    expect(named.length).toBeGreaterThan(12);
    expect(named.filter(({ action }) => !source.includes(`'${action}'`))).toEqual([]);
  });

  it('name every check of the doctor', () => {
    const named = rowsOf(sectionOf(command, '## `latchkey doctor`')).flatMap(([check = '']) => codeIn(check));
    const checks = [...fileText('cli/src/doctor/examine.ts').matchAll(/(?:examine|attempt|name:)[ (]'([\w -]+)'/g)].map(
      ([, name = '']) => name,
    );
    expect([...new Set(checks)].sort()).toEqual(named.sort());
  });

  it('name the scopes of service clients and of tokens', () => {
    const services = rowsOf(sectionOf(operate, '## Service clients')).flatMap(([scope = '']) => codeIn(scope));
    expect(services.filter((scope) => !source.includes(`'${scope}'`))).toEqual([]);
    const documented = rowsOf(sectionOf('docs/api-design.md', '## Scopes')).flatMap(([scope = '']) => codeIn(scope));
    const used = routes.flatMap(({ policy }) => ('scope' in policy && policy.scope !== null ? [policy.scope] : []));
    expect(documented.sort()).toEqual([...new Set(used)].filter((scope) => scope.includes(':')).sort());
  });

  it('name addresses that there are', () => {
    const known = new Set(routes.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`));
    const named = documents
      .filter(({ path }) => !path.startsWith('docs/decisions/') && path !== 'docs/rules.md')
      .flatMap(({ path, text }) =>
        [...text.matchAll(/`(GET|POST|PUT|PATCH|DELETE)\s(?:\/api\/v1)?(\/[\w/:<>.-]+)(?:\?\w*)?`/g)].map(
          ([, method, address = '']) => ({
            path,
            address: `${method} ${address.replace(/:\w+|<\w+>/g, ':')}`,
          }),
        ),
      );
    expect(named.length).toBeGreaterThan(80);
    const atRoot = /^GET \/(?:health|metrics|docs|\.well-known)/;
    expect(named.filter(({ address }) => !known.has(address) && !atRoot.test(address))).toEqual([]);
  });

  it('name the packages that there are', () => {
    const text = documentText('docs/decisions/0002-dependencies.md');
    const [ofServer = '', forDevelopment = ''] = text.split('For development only');
    const packagesIn = (part: string) =>
      rowsOf(part)
        .flatMap(([names = '']) => codeIn(names))
        .sort();
    expect(packagesIn(ofServer)).toEqual(Object.keys(JSON.parse(fileText('server/package.json')).dependencies).sort());
    const development = ['.', 'server', 'cli'].flatMap((folder) =>
      Object.keys(JSON.parse(fileText(`${folder}/package.json`)).devDependencies),
    );
    expect(packagesIn(forDevelopment).filter((name) => !development.includes(name))).toEqual([]);
  });

  it('name the programs that the tests start', () => {
    const row = rowsOf(sectionOf('CONTRIBUTING.md', '### What npm test needs')).find(([what]) => what === 'Programs');
    const wanted = new Set(
      [...fileText('scripts/test.mjs').matchAll(/\{ command: '([\w-]+)', package: '([\w-]+)'/g)].map(
        ([, program = '', name = '']) => (program === 'initdb' ? name : program),
      ),
    );
    expect(codeIn(row?.[1] ?? '').sort()).toEqual([...wanted].sort());
    expect(statementsOf('README.md')).toContain('three small Debian programs');
  });
});
