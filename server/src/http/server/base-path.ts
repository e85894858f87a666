const wellKnown = /^\/\.well-known\/[^/?]+/;

/**
 * Returns the address of a request below the root of this service, whether or not the proxy in front takes the path of
 * `BASE_URL` away. Only addresses that are ours without it lose it, so that a path such as `/api` is no trap. Documents
 * about a resource below a path are also asked for with the path at the end (RFC 8615; RFC 9728, section 3.1). Rule:
 * FIT-50.
 * @param isOurs tells whether addresses of ours begin with a segment; that of the root is empty
 */
export function withoutBasePath(url: string, basePath: string, isOurs: (segment: string) => boolean): string {
  if (basePath === '') return url;
  const document = wellKnown.exec(url)?.[0] ?? '';
  if (!url.startsWith(basePath, document.length)) return url;
  const rest = url.slice(document.length + basePath.length);
  const [, slash, segment = ''] = /^(\/?)([^/?]*)/.exec(rest) ?? [];
  // Another name that begins alike.
  if (slash === '' && segment !== '') return url;
  if (document !== '') return document + rest;
  const isBaseItself = slash === '' && !isOurs(basePath.split('/')[1] ?? '');
  if (slash === '') return isBaseItself ? `/${rest}` : url;
  return isOurs(segment) ? rest : url;
}
