import { describe, expect, it } from 'vitest';
import { withoutBasePath } from './base-path.ts';

const ours = new Set(['', 'api', 'mcp', 'docs', '.well-known', 'health', 'reset-password']);
const isOurs = (segment: string) => ours.has(segment);

describe('withoutBasePath (FIT-50)', () => {
  it.each([
    // The proxy keeps the path, or takes it away.
    ['/auth', '/auth/api/v1/org?x=/auth', '/api/v1/org?x=/auth'],
    ['/auth', '/api/v1/org', '/api/v1/org'],
    ['/auth', '/auth', '/'],
    ['/auth', '/auth?x', '/?x'],
    ['/auth', '/auth/', '/'],
    ['/auth', '/auth/docs/', '/docs/'],
    ['/a/b', '/a/b/mcp', '/mcp'],
    // Nothing of ours, or another name that begins alike.
    ['/auth', '/authority/api/v1/org', '/authority/api/v1/org'],
    ['/auth', '/auth/nowhere', '/auth/nowhere'],
    ['/auth', '/auth/auth/api', '/auth/auth/api'],
    ['/auth', '/auth//api/v1/org', '//api/v1/org'],
    // A path that is also one of ours.
    ['/api', '/api/v1/org', '/api/v1/org'],
    ['/api', '/api/api/v1/org', '/api/v1/org'],
    ['/api', '/api/mcp', '/mcp'],
    ['/docs', '/docs', '/docs'],
    ['/docs', '/docs/swagger-ui.css', '/docs/swagger-ui.css'],
    ['/docs', '/docs/docs', '/docs'],
    // Documents about a resource below a path.
    ['/auth', '/.well-known/oauth-protected-resource/auth/mcp', '/.well-known/oauth-protected-resource/mcp'],
    ['/auth', '/.well-known/oauth-protected-resource/auth', '/.well-known/oauth-protected-resource'],
    ['/auth', '/.well-known/oauth-protected-resource/authority', '/.well-known/oauth-protected-resource/authority'],
    ['/auth', '/auth/.well-known/jwks.json', '/.well-known/jwks.json'],
    ['', '/auth/api', '/auth/api'],
  ])('below %j, %s is %s', (basePath, url, expected) => {
    expect(withoutBasePath(url, basePath, isOurs)).toBe(expected);
  });
});
