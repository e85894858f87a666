import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../../..');
const text = readFileSync(join(root, 'docs/security.md'), 'utf8');
const rules = readFileSync(join(root, 'docs/rules.md'), 'utf8');

/** Requirement groups in each chapter of ASVS 5.0, V1 to V17. */
const groupsOf = [5, 4, 7, 4, 4, 8, 6, 4, 2, 7, 7, 3, 4, 3, 4, 5, 3];

/** Returns the beginnings of first cells of table rows that match a form. */
const rowsOf = (form: RegExp) => [...text.matchAll(form)].map((match) => match[1]);

describe('docs/security.md (SECURITY-1)', () => {
  it('names test files that exist', () => {
    const there = new Set(
      ['server', 'cli'].flatMap((part) =>
        readdirSync(join(root, part), { recursive: true, encoding: 'utf8' })
          .filter((path) => path.endsWith('.test.ts') && !path.includes('node_modules'))
          .map((path) => basename(path)),
      ),
    );
    const named = [...new Set(rowsOf(/`([\w./-]+\.test\.ts)`/g))];
    expect(named.length).toBeGreaterThan(80);
    expect(named.filter((name) => !there.has(name ?? ''))).toEqual([]);
  });

  it('names rules that exist, and that still hold', () => {
    const known = new Map([...rules.matchAll(/^- \*\*([A-Z]+-\d+)\*\* (.*)$/gm)].map(([, id, rule]) => [id, rule]));
    const areas = [...new Set([...known.keys()].map((id) => id?.split('-')[0]))].join('|');
    const named = rowsOf(new RegExp(`\\b((?:${areas})-\\d+)\\b`, 'g')).filter((id) => id !== 'SHA-256');
    expect(named.length).toBeGreaterThan(80);
    expect(named.filter((id) => !known.has(id) || /^withdrawn/i.test(known.get(id) ?? ''))).toEqual([]);
  });

  it('has a row for each requirement group of ASVS 5.0 and each risk of the API Top 10, in order', () => {
    const groups = groupsOf.flatMap((count, chapter) =>
      Array.from({ length: count }, (_, group) => `V${chapter + 1}.${group + 1}`),
    );
    expect(rowsOf(/^\| (V\d+\.\d+) /gm)).toEqual(groups);
    expect(rowsOf(/^\| (API\d+):2023 /gm)).toEqual(Array.from({ length: 10 }, (_, place) => `API${place + 1}`));
  });

  it('links to pages that exist', () => {
    const links = rowsOf(/\]\(([^)#]+)(?:#[^)]*)?\)/g);
    const missing = links.filter((link) => {
      try {
        readFileSync(join(root, 'docs', link ?? ''));
        return false;
      } catch {
        return true;
      }
    });
    expect(missing).toEqual([]);
  });
});
