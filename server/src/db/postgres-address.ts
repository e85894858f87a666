/** Sessions of these kinds can write; the service needs nothing else. */
const writing = new Set(['any', 'primary', 'read-write']);
const form = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^@/?#]+)((?:\/[^?#]*)?)(?:\?([^#]*))?$/;
const hostForm = /^(?:\[[0-9a-f:]+\]|[^:[\]\s]+)(?::\d{1,5})?$/i;

/**
 * Returns the address of each server in a URL, which may list several as with libpq
 * (`postgres://user:password@one:5432,two:5432/latchkey`), in their order. `sslmode` has its meaning of libpq. `null`
 * where the URL is malformed, or asks for read-only sessions (`target_session_attrs`).
 */
export function postgresAddresses(address: string): readonly string[] | null {
  const [, start = '', hosts = '', path = '', parameters = ''] = form.exec(address) ?? [];
  const names = hosts.split(',');
  if (!names.every((name) => hostForm.test(name))) return null;
  const query = new URLSearchParams(parameters);
  if (!writing.has(query.get('target_session_attrs') ?? 'any')) return null;
  query.delete('target_session_attrs');
  if (query.has('sslmode') && !query.has('uselibpqcompat')) query.set('uselibpqcompat', 'true');
  const end = query.size === 0 ? path : `${path}?${query.toString()}`;
  const addresses = names.map((name) => `${start}${name}${end}`);
  return addresses.every((one) => URL.canParse(one)) ? addresses : null;
}
