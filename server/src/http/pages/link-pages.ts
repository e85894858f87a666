import { readFileSync } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import type { Services } from '../../services.ts';
import { StaticDocument } from '../server/document.ts';
import { leadsToPage } from './page-address.ts';

/** Only this origin is fetched from, the browser itself submits no form, and no page may frame it. */
const contentPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'";
const pageHeaders = {
  'content-security-policy': contentPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-robots-tag': 'noindex',
};

const style = readFileSync(new URL('./link.css', import.meta.url));
const link = readFileSync(new URL('./link.js', import.meta.url));
const pages = {
  'reset-password': {
    page: readFileSync(new URL('./reset-password.html', import.meta.url)),
    script: readFileSync(new URL('./reset-password.js', import.meta.url)),
  },
  'confirm-email': {
    page: readFileSync(new URL('./confirm-email.html', import.meta.url)),
    script: readFileSync(new URL('./confirm-email.js', import.meta.url)),
  },
};

const rewrittenLink = new RegExp(`^/(${Object.keys(pages).join('|')})%23`, 'i');

/**
 * Returns the address of a request, without the secret of a link where a program has made a part of the path of its
 * fragment: the page finds it in the browser, and no log has it. Rule: FIT-28.
 */
export function linkPageUrl(url: string): string {
  const page = rewrittenLink.exec(url)?.[1];
  return page === undefined ? url : `/${page}`;
}

/**
 * Serves the pages where links in mails lead as long as no other front end answers there: an invited or forgetful user
 * chooses a password, or a user confirms an address. A GET changes nothing. The secret of the link stands in the address
 * after `#` and reaches the server only as the credential of the request. Rules: PASSWORD-11, PASSWORD-14, ADDRESS-5.
 * @returns their addresses, which take GET from every caller
 */
export function addLinkPages(app: FastifyInstance, services: Services): string[] {
  const files = Object.entries(pages).flatMap(([name, { page, script }]) => [
    { url: `/${name}`, type: 'text/html', caching: 'no-store', content: page },
    { url: `/${name}/page.js`, type: 'text/javascript', caching: 'no-cache', content: Buffer.concat([link, script]) },
    { url: `/${name}/page.css`, type: 'text/css', caching: 'no-cache', content: style },
  ]);
  for (const { url, type, caching, content } of files) {
    const document = new StaticDocument(content);
    app.get(url, { config: { open: 'page' } }, async (request, reply) => {
      if (leadsToPage(request, reply, services.config)) return reply;
      reply.type(`${type}; charset=utf-8`).headers({ ...pageHeaders, 'cache-control': caching });
      return document.send(request, reply);
    });
  }
  return files.map(({ url }) => url);
}
