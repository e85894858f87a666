import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { variables } from '../../src/config/config.ts';

const root = join(import.meta.dirname, '../../..');
const text = (path: string) => readFileSync(join(root, path), 'utf8');
const known = new Set(Object.keys(variables.shape).flatMap((name) => [name, `${name}_FILE`]));
const others = new Set(['NODE_ENV']);

/** Upper-case names that are given a value. */
function namesIn(part: string): string[] {
  return [...part.matchAll(/(?<![A-Z_$\w])([A-Z][A-Z_]+)(?==|: )/g)].map(([, name = '']) => name);
}

describe('files for deployments', () => {
  it('set only variables that the service reads', () => {
    const dockerfile = /^ENV (.*)$/m.exec(text('Dockerfile'))?.[1] ?? '';
    const compose = /environment: &environment\n((?: {4}.*\n)+)/.exec(text('deploy/compose.yaml'))?.[1] ?? '';
    const unit = /^Environment=(.*)$/m.exec(text('deploy/latchkey.service'))?.[1] ?? '';
    const names = [dockerfile, compose, unit].map(namesIn);
    expect(names.map(({ length }) => length > 1)).toEqual([true, true, true]);
    expect(names.flat().filter((name) => !known.has(name) && !others.has(name))).toEqual([]);
  });

  it('copy and start only what is there', () => {
    const dockerfile = text('Dockerfile');
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, paths = '']) =>
      paths.split(' '),
    );
    expect(copied.length).toBeGreaterThan(5);
    expect(copied.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    // What is not let through to the build is missing there.
    const letThrough = text('.dockerignore').matchAll(/^!(\S+)$/gm);
    const tops = new Set([...letThrough].map(([, path = '']) => path));
    expect(copied.filter((path) => !tops.has(path) && !tops.has(dirname(path).split('/')[0] ?? ''))).toEqual([]);
    const started = [...`${dockerfile}${text('deploy/latchkey.service')}`.matchAll(/dist\/(\S+?\.js)/g)];
    expect(started.map(([, path = '']) => existsSync(join(root, 'dist', path)))).toEqual([true, true]);
  });

  it('mount every secret and volume that is named', () => {
    const compose = text('deploy/compose.yaml');
    const [services = '', rest = ''] = compose.split(/^secrets:$/m);
    const [secrets = '', volumes = ''] = rest.split(/^volumes:$/m);
    const declared = (part: string) => [...part.matchAll(/^ {2}([a-z0-9-]+):/gm)].map(([, name = '']) => name).sort();
    const used = (form: RegExp) => [...new Set([...services.matchAll(form)].map(([, name = '']) => name))].sort();
    expect(used(/\/run\/secrets\/([a-z-]+)/g)).toEqual(declared(secrets));
    expect(used(/volumes: \['([a-z0-9-]+):/g)).toEqual(declared(volumes));
  });
});
