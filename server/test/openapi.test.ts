import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { addressOf } from '../src/http/endpoint.ts';
import { openApiDocument } from '../src/http/openapi.ts';
import { routes } from '../src/routes.gen.ts';

const file = '../../docs/openapi.gen.json';

describe('OpenAPI document', () => {
  it('is the reviewed one (RUN-8); after an intended change run vitest with -u', async () => {
    await expect(`${JSON.stringify(openApiDocument(routes), null, 2)}\n`).toMatchFileSnapshot(file);
  });

  it('has every endpoint, each with a tag, a summary and an id of its own (RUN-8)', () => {
    const document = JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
    const ids = new Set<string>();
    for (const endpoint of routes) {
      const address = addressOf(endpoint).replace(/:(\w+)/g, '{$1}');
      const operation = document.paths[address]?.[endpoint.method.toLowerCase()];
      expect(operation, `${endpoint.method} ${address}`).toBeDefined();
      expect(operation.summary.length).toBeGreaterThan(3);
      expect(operation.tags).toHaveLength(1);
      ids.add(operation.operationId);
    }
    expect(ids.size).toBe(routes.length);
  });
});
