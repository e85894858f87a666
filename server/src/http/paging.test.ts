import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ApiError } from '../base/errors.ts';
import { pageMax, pageOf, pageQuery, pagination, toPagination } from './paging.ts';

const query = z.object(pageQuery);

describe('pages of a list (USER-14, USER-15)', () => {
  it.each([
    [{}, { page: 1, limit: 25, offset: 0 }],
    [{ page: '3' }, { page: 3, limit: 25, offset: 50 }],
    [{ limit: '100' }, { page: 1, limit: 100, offset: 0 }],
    [
      { page: '2', limit: '1' },
      { page: 2, limit: 1, offset: 1 },
    ],
    [
      { page: String(pageMax), limit: '100' },
      { page: pageMax, limit: 100, offset: (pageMax - 1) * 100 },
    ],
  ])('%j', (given, expected) => {
    expect(pageOf(query.parse(given))).toEqual(expected);
  });

  it('a search lies within 10,000 items (HTTP-39)', () => {
    expect(pageOf({ page: 100, limit: 100, search: 'a' }).offset).toBe(9_900);
    expect(() => pageOf({ page: 101, limit: 100, search: 'a' })).toThrow(ApiError);
    expect(pageOf({ page: 101, limit: 100, search: '' }).offset).toBe(10_000);
  });

  const odd = ['0', '-1', '1.5', '01', '+1', '1e2', ' 1', '1 ', '', 'x', '٣', '0x1', 'NaN', 'Infinity', '1000000000'];
  it.each(odd)('%j is neither page nor limit (HTTP-21)', (given) => {
    expect(query.safeParse({ page: given }).success).toBe(false);
    expect(query.safeParse({ limit: given }).success).toBe(false);
  });

  it('the bounds are exact, and values are text, once each (HTTP-14, HTTP-21)', () => {
    const isTaken = (given: unknown) => query.safeParse(given).success;
    expect([isTaken({ limit: '101' }), isTaken({ page: String(pageMax + 1) })]).toEqual([false, false]);
    expect([isTaken({ limit: 1 }), isTaken({ page: ['1', '2'] }), isTaken({ page: null })]).toEqual([
      false,
      false,
      false,
    ]);
  });

  it.each([
    [1, 25, 0, [0, false, false]],
    [1, 25, 1, [1, false, false]],
    [1, 25, 25, [1, false, false]],
    [1, 25, 26, [2, true, false]],
    [2, 25, 26, [2, false, true]],
    [2, 25, 0, [0, false, true]],
    [9, 25, 26, [2, false, true]],
  ] as const)('page %i, limit %i, of %i', (...given) => {
    const [page, limit, totalCount, [totalPages, hasNextPage, hasPrevPage]] = given;
    const told = toPagination(pageOf({ page, limit }), totalCount);
    expect(told).toEqual({ page, limit, totalCount, totalPages, hasNextPage, hasPrevPage });
  });

  it('who goes on while there is a next page sees each item once, property', () => {
    const numbers = fc.record({ limit: fc.integer({ min: 1, max: 100 }), total: fc.integer({ min: 0, max: 500 }) });
    fc.assert(
      fc.property(numbers, ({ limit, total }) => {
        const items = Array.from({ length: total }, (_, place) => place);
        const seen: number[] = [];
        for (let page = 1, goOn = true; goOn; page += 1) {
          const place = pageOf({ page, limit });
          seen.push(...items.slice(place.offset, place.offset + place.limit));
          const told = toPagination(place, total);
          expect(pagination.safeParse(told).success).toBe(true);
          goOn = told.hasNextPage;
        }
        expect(seen).toEqual(items);
      }),
    );
  });
});
