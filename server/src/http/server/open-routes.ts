import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { ApiError } from '../../base/errors.ts';
import type { Services } from '../../services.ts';
import { openApiDocument } from '../openapi/openapi.ts';
import type { Operation } from '../operations.ts';
import { addLinkPages } from '../pages/link-pages.ts';
import { leadsToPage } from '../pages/page-address.ts';
import { StaticDocument } from './document.ts';

/** Only this origin may be asked for anything; the viewer sets styles on its elements. */
const contentPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const html = 'text/html; charset=utf-8';
const script = 'text/javascript; charset=utf-8';
const style = 'text/css; charset=utf-8';

function addDocs(app: FastifyInstance, services: Services): string[] {
  const viewer = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  const files: readonly (readonly [string, string, Buffer])[] = [
    ['/docs', html, readFileSync(new URL('../pages/docs.html', import.meta.url))],
    ['/docs/start.js', script, readFileSync(new URL('../pages/docs.js', import.meta.url))],
    ['/docs/swagger-ui.css', style, readFileSync(join(viewer, 'swagger-ui.css'))],
    ['/docs/swagger-ui-bundle.js', script, readFileSync(join(viewer, 'swagger-ui-bundle.js'))],
  ];
  for (const [url, type, content] of files) {
    const document = new StaticDocument(content);
    app.get(url, { config: { open: 'documentation' } }, async (request, reply) => {
      if (leadsToPage(request, reply, services.config)) return reply;
      reply.type(type).headers({ 'content-security-policy': contentPolicy, 'cache-control': 'no-cache' });
      return document.send(request, reply);
    });
  }
  app.get('/', { config: { open: 'documentation' } }, async (_, reply) =>
    reply.redirect(`${services.config.basePath}/docs`, 302),
  );
  return [...files.map(([url]) => url), '/'];
}

/** The main port is the one that proxies lead to: there, only `METRICS=on` shows them. Rules: RUN-5, FIT-55. */
function addMetrics(app: FastifyInstance, services: Services): void {
  app.get('/metrics', { config: { open: 'metrics' } }, async (_, reply) => {
    const { config, metrics } = services;
    if (config.metrics !== 'on') throw new ApiError('notFound');
    const { contentType, text } = await metrics.expose();
    reply.type(contentType);
    return text;
  });
}

/**
 * The addresses that aren't operations: documentation, metrics and the pages behind links in mails. Rules: RUN-5, RUN-8.
 * @returns those that take GET from every caller
 */
export function addOpenRoutes(app: FastifyInstance, services: Services, endpoints: readonly Operation[]): string[] {
  const description = '/api/v1/openapi.json';
  /** Made for this path of the public address, once it is asked for. */
  let described: string | undefined;
  let document = new StaticDocument(Buffer.alloc(0));
  app.get(description, { config: { open: 'documentation' } }, async (request, reply) => {
    reply.type('application/json; charset=utf-8').header('cache-control', 'no-cache');
    const { basePath } = services.config;
    if (described !== basePath) {
      const whole = { ...openApiDocument(endpoints), servers: [{ url: basePath || '/' }] };
      document = new StaticDocument(Buffer.from(JSON.stringify(whole)));
      described = basePath;
    }
    return document.send(request, reply);
  });
  addMetrics(app, services);
  return [description, ...addDocs(app, services), ...addLinkPages(app, services)];
}
