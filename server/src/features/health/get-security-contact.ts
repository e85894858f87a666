import { day, toTimestamp } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { bytesResponse } from '../../http/media.ts';

/** Less than a year, as RFC 9116 recommends. */
const validDays = 180;

/** Rule: SECURITY-2. */
export const getSecurityContact = endpoint({
  method: 'GET',
  path: '/.well-known/security.txt',
  root: true,
  tag: 'Health',
  summary: 'Where to report a vulnerability (RFC 9116); 404 unless SECURITY_CONTACT is set',
  errors: [404],
  policy: { who: 'anyone' },
  async precondition({ config }) {
    if (config.securityContact === null) throw new ApiError('notFound');
  },
  response: { 200: bytesResponse('text/plain; charset=utf-8') },
  async handle({ config, clock }) {
    const lines = [
      `Contact: ${config.securityContact}`,
      `Expires: ${toTimestamp(clock.now() + validDays * day)}`,
      `Canonical: ${config.baseUrl}/.well-known/security.txt`,
      'Preferred-Languages: en',
    ];
    return Buffer.from(`${lines.join('\n')}\n`);
  },
});
