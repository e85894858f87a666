import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { routes } from '../routes.gen.ts';
import { type AnyEndpoint, endpoint } from './endpoint.ts';
import { nameOperations } from './operations.ts';

function declared(more: Partial<AnyEndpoint>): AnyEndpoint {
  return {
    ...endpoint({
      method: 'GET',
      path: '/things',
      tag: 'Users',
      summary: 'List things',
      policy: { who: 'anyone' },
      response: { 200: z.object({}) },
      handle: async () => ({}),
    }),
    ...more,
  };
}

function namesOf(...given: Parameters<typeof nameOperations>): string[] {
  return nameOperations(...given).map(({ operationId }) => operationId);
}

describe('names of operations (FIT-120)', () => {
  it('are those of the tools in camel case, else those declared, else those of the constants', () => {
    const tool = { name: 'list_all_things', title: 'List' } as const;
    expect(namesOf({ listThings: declared({ tool }), getThing: declared({ operationId: 'getIt' }) })).toEqual([
      'listAllThings',
      'getIt',
    ]);
    expect(namesOf({ listThings: declared({}) })).toEqual(['listThings']);
  });

  it('are declared one by one in a family, and never the same', () => {
    expect(() => nameOperations({ things: [declared({})] })).toThrow('GET /things declares no operationId');
    const twice = [declared({ operationId: 'one' }), declared({ operationId: 'one' })];
    expect(() => nameOperations({ things: twice })).toThrow('two operations have the name one');
  });

  it('read as calls, and are declared only where there is no tool to take them from', () => {
    for (const { operationId } of routes) expect(operationId).toMatch(/^[a-z]+([A-Z][a-z]+)*$/);
    const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    for (const { tool, operationId } of routes) expect([undefined, snakeCase(operationId)]).toContain(tool?.name);
    const names = routes.map(({ operationId }) => operationId);
    expect(names).toEqual(expect.arrayContaining(['listUsers', 'createPersonalAccessToken', 'whoami']));
  });
});
