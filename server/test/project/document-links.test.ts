import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Document, documents, filesBelow, root } from '../support/documents.ts';

/** A text without code blocks, which contain neither links nor headings. */
const withoutBlocks = (text: string) => text.replace(/^```[\s\S]*?^```$/gm, '');

/** The anchors that GitHub gives the headings of a document. */
function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>();
  const headings = [...withoutBlocks(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => heading);
  const anchors = headings.map((heading) => {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const anchor = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(' ', '-');
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
  return new Set(anchors);
}

const linksOf = (text: string) =>
  [...withoutBlocks(text).matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);

/** Returns whether the file and the heading of a link exist. */
function isGood({ path, text }: Document, target: string): boolean {
  if (/^(?:https|mailto):/.test(target)) return URL.canParse(target);
  const [file = '', anchor] = target.split('#');
  const to = file === '' ? path : join(dirname(path), file);
  if (!existsSync(join(root, to))) return false;
  if (anchor === undefined) return true;
  return anchorsOf(file === '' ? text : readFileSync(join(root, to), 'utf8')).has(anchor);
}

/** Folders that a path in a document may be relative to. */
const starts = ['', 'server/src', 'server/test', 'server', 'cli/src', 'docs'];
/** Files that are created at run time, or belong to the reader. */
const isElsewhere = (path: string) => /^(?:\.|bench\/results|faults\/results|secrets\/)/.test(path);

function isThere(document: Document, path: string): boolean {
  return [...starts, dirname(document.path)].some((start) => {
    if (!path.includes('*')) return existsSync(join(root, start, path));
    const folder = join(start, dirname(path));
    if (!existsSync(join(root, folder))) return false;
    const form = new RegExp(`^${path.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`);
    return filesBelow([folder], ['']).some((found) => form.test(found.slice(start === '' ? 0 : start.length + 1)));
  });
}

describe('the documents', () => {
  it('are looked at', () => {
    expect(documents.length).toBeGreaterThan(40);
    expect(documents.flatMap(({ text }) => linksOf(text)).length).toBeGreaterThan(80);
  });

  it('link to files and headings that are there', () => {
    const broken = documents.flatMap((document) =>
      linksOf(document.text)
        .filter((target) => !isGood(document, target))
        .map((target) => `${document.path}: ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it('name source files that are there', () => {
    const named = /(?<![\w/.~<>-])(?:[\w.-]+\/)+[\w.*-]+\.(?:ts|mjs|json|md|yaml|service)(?![\w/.-]*[/:])/g;
    const missing = documents.flatMap((document) =>
      [...document.text.replace(/\]\([^)]*\)|https?:\S+/g, '').matchAll(named)]
        .map(([path]) => path)
        .filter((path) => !isElsewhere(path) && !isThere(document, path))
        .map((path) => `${document.path}: ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it('are there where the source names them', () => {
    const files = filesBelow(
      ['server/src', 'server/test', 'cli', 'scripts', 'bench', 'faults', 'harness', 'deploy'],
      ['.ts', '.mjs', '.yaml', '.service'],
    );
    const missing = files.flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/\bdocs\/[\w./-]+\.md\b/g)]
        .filter(([path]) => !existsSync(join(root, path)))
        .map(([path]) => `${file}: ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it('are all in the index of the README: guides, and what is in docs/ itself', () => {
    const readme = linksOf(documents.find(({ path }) => path === 'README.md')?.text ?? '');
    const wanted = documents.map(({ path }) => path).filter((path) => !/^(?:docs\/decisions\/|README)/.test(path));
    expect(wanted.filter((path) => !readme.includes(path))).toEqual([]);
  });

  it('name decisions that are there', () => {
    const numbers = new Set(documents.flatMap(({ path }) => /^docs\/decisions\/(\d{4})-/.exec(path)?.[1] ?? []));
    const named = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/\(((?:\d{4}(?:, | and )?)+)\)|\b[Dd]ecisions? (\d{4})|see (\d{4})\b/g)].flatMap((match) =>
        (match[1] ?? match[2] ?? match[3] ?? '').split(/, | and /).map((number) => ({ path, number })),
      ),
    );
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter(({ number }) => !numbers.has(number) && number.startsWith('00'))).toEqual([]);
  });
});
