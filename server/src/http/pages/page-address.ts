import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * Redirects from the address of a page with a slash at its end to the one without it, from which the relative addresses
 * of its files start. Browsers keep what stands after `#`. Rules: FIT-40, FIT-50.
 * @returns whether it did
 */
export function leadsToPage(
  { url }: FastifyRequest,
  reply: FastifyReply,
  { basePath }: { readonly basePath: string },
): boolean {
  const [, page, query = ''] = /^(\/[^?]+)\/(\?.*)?$/.exec(url) ?? [];
  if (page === undefined) return false;
  reply.redirect(basePath + page + query, 302);
  return true;
}
