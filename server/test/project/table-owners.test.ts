import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../../..');
const src = join(root, 'server/src');
/** In place of the name of a table that stands in a variable. */
const variable = '${';

interface Exception {
  readonly folder: string;
  readonly tables: readonly string[] | 'any';
  /** Only statements that delete. */
  readonly isDelete?: true;
  readonly why: string;
}

/** Who writes tables of others, which ones, and why. Any other table is written by one folder, which owns it. */
const exceptions: readonly Exception[] = [
  { folder: 'db/schema/migrations', tables: 'any', why: 'migrations bring the rows of earlier releases along' },
  { folder: 'operator/restoring', tables: 'any', why: 'a store takes the place of another' },
  { folder: 'features/org', tables: 'any', isDelete: true, why: 'what belongs to an organization goes with it' },
  {
    folder: 'operator/erasure',
    tables: ['outbox', 'personal_access_tokens', 'pictures', 'session_tokens', 'sessions', 'users'],
    why: 'an erased user leaves nothing behind',
  },
  {
    folder: 'operator/imported-tokens',
    tables: ['personal_access_tokens'],
    why: 'tokens of other deployments, all in one statement',
  },
  {
    folder: 'keys',
    tables: ['audit_checkpoints', 'audit_erasures', 'settings', 'webhooks'],
    why: 'another key encrypts what is stored, all in one transaction',
  },
  { folder: 'features/addresses', tables: ['users'], why: 'the columns of the address and of its verification' },
  { folder: 'features/sessions', tables: ['users'], why: 'the columns of the last sign-in; sessions know no users' },
];

/** By statements of the query builder, and by SQL that is written out. */
const built = /\.(insertInto|updateTable|deleteFrom|replaceInto|mergeInto)\(\s*(?:'(\w+)'|(\w+))/g;
const written = /\b(insert (?:or replace )?into|update|delete from) (?:main\.)?(\w+|\$\{)/gi;

interface Write {
  readonly folder: string;
  readonly table: string;
  readonly isDelete: boolean;
}

function writesOf(file: string): Write[] {
  const text = readFileSync(file, 'utf8').replace(/^\s*(?:\/\/|\/?\*).*$/gm, '');
  const sql = (text.match(/sql(?:<[^`]*>)?`[^`]*`/g) ?? []).join('\n');
  const found = [...text.matchAll(built), ...sql.matchAll(written)];
  const folder = relative(src, dirname(file));
  return found.map(([, how = '', table = variable]) => ({ folder, table, isDelete: /^delete/i.test(how) }));
}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .concat(
    readdirSync(join(root, 'cli/src'), { recursive: true, encoding: 'utf8' }).map((name) => `../../cli/src/${name}`),
  )
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => join(src, name));

const schema = ['tables', 'node-tables', 'event-tables', 'sign-in-tables']
  .map((name) => readFileSync(join(src, `db/schema/${name}.ts`), 'utf8'))
  .join('\n');
const tables = Array.from(
  schema.matchAll(/^export interface \w*Tables(?: extends [^{]*)? \{\n([^}]*)\}/gm),
  ([, body]) => Array.from((body ?? '').matchAll(/^ {2}(\w+): /gm), ([, name]) => name ?? ''),
).flat();

const writes = files.flatMap(writesOf).filter(({ table }) => tables.includes(table));
const isException = ({ folder, table, isDelete }: Write) =>
  exceptions.some(
    (one) =>
      one.folder === folder && (one.tables === 'any' || one.tables.includes(table)) && (isDelete || !one.isDelete),
  );

function ownersOf(table: string): string[] {
  const own = writes.filter((write) => write.table === table && !isException(write)).map(({ folder }) => folder);
  return [...new Set(own)].sort();
}

describe('each table has one folder that writes it', () => {
  it('is looked at: there are tables and statements', () => {
    expect(tables.length).toBeGreaterThan(30);
    expect(writes.length).toBeGreaterThan(100);
  });

  it('the owners are these; who else writes is named above, with the reason', async () => {
    const rows = tables.toSorted().map((table) => [table, ownersOf(table).join(', ')]);
    expect(rows.filter(([, owners = '']) => owners === '' || owners.includes(','))).toEqual([]);
    const text = ['| Table | Written by |', '|---|---|', ...rows.map(([table, owner]) => `| ${table} | ${owner}/ |`)];
    await expect(`# Who writes which table\n\n${text.join('\n')}\n`).toMatchFileSnapshot('snapshots/table-owners.md');
  });

  it('no one is named above without need', () => {
    const needed = (folder: string, table: string) =>
      writes.some((one) => one.folder === folder && one.table === table);
    const idle = exceptions.flatMap(({ folder, tables: named }) =>
      named === 'any' ? [] : named.filter((table) => !needed(folder, table)).map((table) => `${folder}: ${table}`),
    );
    expect(idle).toEqual([]);
  });

  it('a statement whose table is a variable is one of those that write any', () => {
    const folders = new Set(
      files
        .flatMap(writesOf)
        .filter(({ table }) => table === variable)
        .map(({ folder }) => folder),
    );
    expect([...folders].sort()).toEqual(['db/move', 'db/schema/migrations', 'operator/erasure', 'operator/restoring']);
  });
});
