import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The root of the checkout. */
export const root = join(import.meta.dirname, '../../..');

/** A document of the project. */
export interface Document {
  /** From the root. */
  readonly path: string;
  readonly text: string;
}

const readText = (path: string) => readFileSync(join(root, path), 'utf8');

/** Paths of the files below some folders, from the root, by the endings of their names. */
export function filesBelow(folders: readonly string[], endings: readonly string[]): string[] {
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((path) => join(folder, path))
      .filter((path) => endings.some((ending) => path.endsWith(ending)) && !/node_modules|\.cache/.test(path)),
  );
}

/** Every document in Markdown: those at the root, and those in `docs/`. */
export const documents: readonly Document[] = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...filesBelow(['docs'], ['.md']),
].map((path) => ({ path, text: readText(path) }));

/** The text of one document. */
export function documentText(path: string): string {
  const found = documents.find((document) => document.path === path);
  if (!found) throw new Error(`There is no document ${path}`);
  return found.text;
}

/** The text of one document without its line breaks, to look for statements that may be wrapped. */
export const statementsOf = (path: string) => documentText(path).replace(/\s+/g, ' ');

/** The part of a document below a heading, up to the next heading of any level. */
export function sectionOf(path: string, heading: string): string {
  const text = documentText(path);
  const start = text.indexOf(`\n${heading}\n`);
  if (start < 0) throw new Error(`${path} has no heading ${heading}`);
  const rest = text.slice(start + heading.length + 2);
  const end = rest.search(/^#{1,6} /m);
  return end < 0 ? rest : rest.slice(0, end);
}

/** The cells of the rows of the tables in a text, their headers left out. */
export function rowsOf(text: string): string[][] {
  const rows = [...text.matchAll(/^\| .*\|$/gm)].map(([row]) =>
    row
      .slice(2, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  );
  const headers = [...text.matchAll(/^(\| .*\|)\n\|-/gm)].map(([, row = '']) =>
    row.slice(2, -1).split(' | ')[0]?.trim(),
  );
  return rows.filter(([first]) => !headers.includes(first));
}

/** The code spans of a text. */
export const codeIn = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);

const units: Readonly<Record<string, number>> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  mebibyte: 1_048_576,
  gigabyte: 1_000_000_000,
};

function factorOf(factor: string): number {
  const [base = '', power] = factor.trim().replaceAll('_', '').split(' ** ');
  const value = units[base] ?? Number(base);
  return power === undefined ? value : value ** Number(power);
}

const sources = filesBelow(['server/src', 'cli/src', 'scripts'], ['.ts', '.mjs']);

/**
 * The value of a numeric constant in a source file, exported or not. Throws unless exactly one file matches, and its constant is
 * a product of numbers and units.
 * @param file the file's name, with folders where several files have it
 */
export function constantIn(file: string, name: string): number {
  const paths = sources.filter((path) => path.endsWith(`/${file}`));
  if (paths.length !== 1) throw new Error(`${paths.length} files end in ${file}`);
  const found = new RegExp(`\\bconst ${name} = ([^;]+);`).exec(readText(paths[0] ?? ''))?.[1];
  const value = (found ?? '').split(/ \* (?!\*)/).reduce((product, factor) => product * factorOf(factor), 1);
  if (found === undefined || Number.isNaN(value)) throw new Error(`${file} gives ${name} no number`);
  return value;
}
