import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestApp } from '../../../test/support/test-app.ts';
import { day, toTimestamp } from '../../base/clock.ts';
import { loadConfig } from '../../config/load-config.ts';

const path = '//.well-known/security.txt';
const contact = 'mailto:security@example.com';

describe('GET /.well-known/security.txt (SECURITY-2)', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await TestApp.start({ SECURITY_CONTACT: contact, BASE_URL: 'https://id.example.com' });
  });
  afterAll(() => app.close());

  it('200: the fields of RFC 9116, without a credential, before and after there is an organization', async () => {
    const { status, text, headers } = await app.anonymous.get(path);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(text.split('\n')).toEqual([
      `Contact: ${contact}`,
      `Expires: ${toTimestamp(app.clock.now() + 180 * day)}`,
      'Canonical: https://id.example.com/.well-known/security.txt',
      'Preferred-Languages: en',
      '',
    ]);
    app.clock.advance(400 * day);
    const later = await app.anonymous.get(path);
    expect(later.text).toContain(`Expires: ${toTimestamp(app.clock.now() + 180 * day)}`);
    expect((await app.with('nonsense').get(path)).status).toBe(200);
    expect((await app.anonymous.call('HEAD', path)).status).toBe(200);
    expect((await app.anonymous.post(path, {})).status).toBe(405);
  });

  it('404: once a reload takes the contact away; 200 when it is back', async () => {
    delete app.environment['SECURITY_CONTACT'];
    app.services.reloadConfig();
    const { status, body } = await app.anonymous.get(path);
    expect([status, body.error.code]).toEqual([404, 'NOT_FOUND']);
    app.environment['SECURITY_CONTACT'] = 'https://example.com/security';
    app.services.reloadConfig();
    expect((await app.anonymous.get(path)).text).toContain('Contact: https://example.com/security\n');
  });

  it.each([
    'security@example.com',
    'mailto:',
    'mailto:nobody',
    'mailto:a@example.com,b@example.com',
    'mailto:a@example.com?subject=x',
    'mailto:a@example.com\nContact: mailto:evil@example.com',
    'http://example.com/security',
    'https://',
    'https://example.com/a b',
    'https://example.com/\nExpires: x',
    'https://user:secret@example.com/',
    'javascript:alert(1)',
  ])('the start refuses %j', (given) => {
    expect(() => loadConfig({ SECURITY_CONTACT: given })).toThrow(
      /SECURITY_CONTACT is .*: it must be an address such as/s,
    );
  });

  it.each(['mailto:Security@Example.com', 'https://example.com/.well-known/vdp?x=1#y'])(
    'the start takes %j',
    (given) => {
      expect(loadConfig({ SECURITY_CONTACT: given }).securityContact).toBe(given);
    },
  );
});
