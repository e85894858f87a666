import { describe, expect, it } from 'vitest';
import { catalogue, grantableScopes, type ScopeInfo } from './scopes.ts';

const info = (name: string, category: string): ScopeInfo => ({
  name,
  category,
  description: name,
  requiresUserConsent: true,
});

describe('grantableScopes', () => {
  it('puts added scopes behind those of their category, and new categories last (SCOPE-7, PAT-17)', () => {
    const all = [info('a:1', 'A'), info('b:1', 'B'), info('c:1', 'C'), info('a:2', 'A'), info('b:2', 'B')];
    const { infos, names } = grantableScopes(all, null);
    expect(infos.map(({ name }) => name)).toEqual(['a:1', 'a:2', 'b:1', 'b:2', 'c:1']);
    expect(names).toEqual(new Set(['a:1', 'a:2', 'b:1', 'b:2', 'c:1']));
  });

  it('grants what is named, whatever the order in which it is named; nothing when nothing is (SCOPE-8)', () => {
    expect(grantableScopes(catalogue, ['token:read', 'openid']).infos.map(({ name }) => name)).toEqual([
      'openid',
      'token:read',
    ]);
    expect(grantableScopes(catalogue, []).names.size).toBe(0);
  });

  it('leaves the catalogue itself as it is', () => {
    const before = catalogue.map(({ name }) => name);
    grantableScopes(catalogue, ['token:admin', 'openid']);
    expect(catalogue.map(({ name }) => name)).toEqual(before);
    expect(new Set(before).size).toBe(before.length);
  });
});
