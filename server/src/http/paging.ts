import { z } from 'zod';
import { refuseInput } from '../base/errors.ts';
import { components, queryNumber } from './schemas.ts';

/** The furthest page that can be asked for. */
export const pageMax = 1_000_000;
const limitMax = 100;
const limitDefault = 25;

/** Query parameters of one page of a list; defaults are those of `pageOf`. Rules: USER-15, GROUP-5. */
export const pageQuery = {
  page: queryNumber({ min: 1, max: pageMax }).optional().meta({ default: 1, description: 'Which page, from 1 on' }),
  limit: queryNumber({ min: 1, max: limitMax })
    .optional()
    .meta({ default: limitDefault, description: `Items on a page; ${limitDefault} by default` }),
};

/** Position of a page in its list. */
interface Page {
  readonly page: number;
  readonly limit: number;
  readonly offset: number;
}

/** Searches go no further: everything before a page is read for it, so a closer search is the way. Rule: HTTP-39. */
const foundMax = 10_000;

/** The page that is asked for: the first one, of 25, where nothing else is said. Throws `invalidInput` for one that is too far. */
export function pageOf({
  page = 1,
  limit = limitDefault,
  search,
}: {
  readonly page?: number | undefined;
  readonly limit?: number | undefined;
  readonly search?: string | undefined;
}): Page {
  if (search && page * limit > foundMax) {
    const message = `must be at most ${Math.floor(foundMax / limit)} in a search: search for more than this`;
    throw refuseInput({ field: 'query.page', message });
  }
  return { page, limit, offset: (page - 1) * limit };
}

/** Pagination fields of a response. Rule: USER-14. */
export const pagination = z.object({
  page: z.int(),
  limit: z.int(),
  totalCount: z.int(),
  totalPages: z.int(),
  hasNextPage: z.boolean(),
  hasPrevPage: z.boolean(),
});
components.add(pagination, { id: 'Pagination' });

/** Returns the pagination fields for a list of `totalCount` items. */
export function toPagination({ page, limit }: Page, totalCount: number): z.output<typeof pagination> {
  const totalPages = Math.ceil(totalCount / limit);
  return { page, limit, totalCount, totalPages, hasNextPage: page < totalPages, hasPrevPage: page > 1 };
}

/** Pagination fields of the team directory, with the names that its clients know. Rule: TEAM-17. */
export const directoryPagination = z.object({
  page: z.int(),
  limit: z.int(),
  total: z.int(),
  pages: z.int(),
  hasNext: z.boolean(),
  hasPrev: z.boolean(),
});
components.add(directoryPagination, { id: 'DirectoryPagination' });

/** Returns the pagination fields of the team directory for a list of `total` items. */
export function toDirectoryPagination(page: Page, total: number): z.output<typeof directoryPagination> {
  const { totalPages: pages, hasNextPage: hasNext, hasPrevPage: hasPrev } = toPagination(page, total);
  return { page: page.page, limit: page.limit, total, pages, hasNext, hasPrev };
}
