import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { ApiError } from '../../base/errors.ts';
import type { Services } from '../../services.ts';
import type { AnyEndpoint } from '../endpoint.ts';
import { openApiDocument } from '../openapi/openapi.ts';
import { addLinkPages } from '../pages/link-pages.ts';

/** Only this origin may be asked for anything; the viewer sets styles on its elements. */
const contentPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const html = 'text/html; charset=utf-8';
const script = 'text/javascript; charset=utf-8';
const style = 'text/css; charset=utf-8';

/** Addresses where users look for the documentation. */
const entryPoints = ['/', '/docs/'];

function addDocs(app: FastifyInstance): string[] {
  const viewer = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  // Read once and sent from the same memory, however many clients don't read the response.
  const files: readonly (readonly [string, string, Buffer])[] = [
    ['/docs', html, readFileSync(new URL('../pages/docs.html', import.meta.url))],
    ['/docs/start.js', script, readFileSync(new URL('../pages/docs.js', import.meta.url))],
    ['/docs/swagger-ui.css', style, readFileSync(join(viewer, 'swagger-ui.css'))],
    ['/docs/swagger-ui-bundle.js', script, readFileSync(join(viewer, 'swagger-ui-bundle.js'))],
  ];
  for (const [url, type, content] of files) {
    app.get(url, { config: { open: 'documentation' } }, async (_, reply) => {
      reply.type(type).headers({ 'content-security-policy': contentPolicy, 'cache-control': 'no-cache' });
      return content;
    });
  }
  for (const url of entryPoints) {
    app.get(url, { config: { open: 'documentation' } }, async (_, reply) => reply.redirect('/docs', 302));
  }
  return [...files.map(([url]) => url), ...entryPoints];
}

/** Headers that proxies add: a peer that sends one of these is not the client. */
const forwarding = ['x-forwarded-for', 'x-forwarded-host', 'forwarded', 'x-real-ip', 'via', 'origin'];
const loopback = /^(127\.|::1$|::ffff:127\.)/;
/** A proxy or a page elsewhere that reaches this machine still names another host. */
const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

function addMetrics(app: FastifyInstance, services: Services): void {
  app.get('/metrics', { config: { open: 'metrics' } }, async (request, reply) => {
    // The peer itself counts here, not a client that a proxy names.
    const isForwarded = forwarding.some((name) => request.headers[name] !== undefined);
    const isMeantHere = loopbackHost.test(request.headers.host ?? '');
    const isLocal = loopback.test(request.socket.remoteAddress ?? '') && isMeantHere && !isForwarded;
    const { config, metrics } = services;
    if (config.metrics === 'off' || (config.metrics === 'local' && !isLocal)) throw new ApiError('notFound');
    const { contentType, text } = await metrics.expose();
    reply.type(contentType);
    return text;
  });
}

/**
 * The addresses that aren't operations: documentation, metrics and the pages behind links in mails. Rules: RUN-5, RUN-8.
 * @returns those that take GET from every caller
 */
export function addOpenRoutes(app: FastifyInstance, services: Services, endpoints: readonly AnyEndpoint[]): string[] {
  const description = '/api/v1/openapi.json';
  let document: Buffer | undefined;
  app.get(description, { config: { open: 'documentation' } }, async (_, reply) => {
    reply.type('application/json; charset=utf-8').header('cache-control', 'no-cache');
    document ??= Buffer.from(JSON.stringify(openApiDocument(endpoints)));
    return document;
  });
  addMetrics(app, services);
  return [description, ...addDocs(app), ...addLinkPages(app)];
}
