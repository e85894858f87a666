import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { nodeProblem } from './node-version.ts';

const root = join(import.meta.dirname, '../../..');

describe('nodeProblem', () => {
  it.each(['20.19.0', '20.20.2', '22.23.5', '24.0.0'])('takes %s (FIT-110)', (version) => {
    expect(nodeProblem(version)).toBeNull();
  });

  it.each(['20.18.9', '18.20.0', '8.0.0'])('says what is needed instead of %s (FIT-110)', (version) => {
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const min = engines.node.replace('>=', '');
    expect(nodeProblem(version)).toBe(
      `Node.js ${min} or newer is needed, and this is ${version}: https://nodejs.org/en/download`,
    );
  });

  it.each(['server', 'latchkey'])('comes first in the program %s: nothing else is loaded by then (FIT-110)', (name) => {
    const text = readFileSync(join(root, 'dist/bin', `${name}.js`), 'utf8');
    const imports = [...text.matchAll(/^import .*?from ["']([^"']+)["']/gm)].map((match) => match[1] ?? '');
    for (const path of imports) expect(path, text.slice(0, 500)).toMatch(/^\.\/parts\/(?:node-version|chunk|rolldown)/);
    expect(text).toContain('process.versions.node');
  });
});
