import { describe, expect, it } from 'vitest';
import { defaultSecurity, mailHost, mailPort, mailSender, shownSender, smtpUrl } from './mail-address.ts';

/** Parses a URL, with its password in clear; `null` for an invalid one. */
function read(url: string) {
  const server = smtpUrl.safeParse(url).data;
  if (!server) return null;
  const { login, ...rest } = server;
  return { ...rest, login: login && [login.username, login.password.expose()] };
}

describe('smtpUrl', () => {
  const anybody = { login: null };
  const ada = { login: ['ada', 'pa55word'] };

  it.each([
    ['smtp://smtp.example.com', { host: 'smtp.example.com', port: 587, security: 'opportunistic', ...anybody }],
    ['smtp://smtp.example.com/', { host: 'smtp.example.com', port: 587, security: 'opportunistic', ...anybody }],
    ['smtp://smtp.example.com:25', { host: 'smtp.example.com', port: 25, security: 'opportunistic', ...anybody }],
    ['smtp://smtp.example.com:465', { host: 'smtp.example.com', port: 465, security: 'tls', ...anybody }],
    ['smtps://smtp.example.com', { host: 'smtp.example.com', port: 465, security: 'tls', ...anybody }],
    ['smtps://smtp.example.com:587', { host: 'smtp.example.com', port: 587, security: 'tls', ...anybody }],
    ['SMTP://SMTP.example.com', { host: 'SMTP.example.com', port: 587, security: 'opportunistic', ...anybody }],
    ['smtp://ada:pa55word@smtp.example.com', { host: 'smtp.example.com', port: 587, security: 'starttls', ...ada }],
    [
      'smtp://ada:pa55word@smtp.example.com:2525',
      { host: 'smtp.example.com', port: 2525, security: 'starttls', ...ada },
    ],
    ['smtps://ada:pa55word@smtp.example.com', { host: 'smtp.example.com', port: 465, security: 'tls', ...ada }],
    ['smtp://ada:pa55word@localhost:1025', { host: 'localhost', port: 1025, security: 'opportunistic', ...ada }],
    ['smtp://ada:pa55word@127.0.0.1:1025', { host: '127.0.0.1', port: 1025, security: 'opportunistic', ...ada }],
    ['smtp://ada:pa55word@10.0.0.7', { host: '10.0.0.7', port: 587, security: 'starttls', ...ada }],
    ['smtp://[2001:db8::25]:25', { host: '2001:db8::25', port: 25, security: 'opportunistic', ...anybody }],
    ['smtp://ada:pa55word@[::1]', { host: '::1', port: 587, security: 'opportunistic', ...ada }],
    ['smtp://ada:pa55word@[2001:db8::25]', { host: '2001:db8::25', port: 587, security: 'starttls', ...ada }],
    ['smtp://mail_relay', { host: 'mail_relay', port: 587, security: 'opportunistic', ...anybody }],
  ])('%s (CONFIG-11, CONFIG-29, MAIL-8)', (url, server) => {
    expect(read(url)).toEqual(server);
  });

  it.each([
    ['tls', 465],
    ['starttls', 587],
    ['opportunistic', 587],
    ['none', 587],
  ] as const)(
    '?security=%s says it, with a password too, and the port follows (CONFIG-29, MAIL-8)',
    (security, port) => {
      const url = 'smtp://ada:pa55word@smtp.example.com';
      expect(read(`${url}?security=${security}`)).toEqual({ host: 'smtp.example.com', port, security, ...ada });
      expect(read(`${url}:2525/?security=${security}`)).toMatchObject({ port: 2525, security });
    },
  );

  it('smtps and ?security=tls say the same; anything else contradicts smtps (CONFIG-29)', () => {
    expect(read('smtps://smtp.example.com?security=tls')).toEqual(read('smtps://smtp.example.com'));
    for (const security of ['starttls', 'opportunistic', 'none']) {
      expect(read(`smtps://smtp.example.com?security=${security}`)).toBeNull();
    }
  });

  it.each([
    ['ada%40example.com', 'p%40ss%3A%2F%3F%23%25', ['ada@example.com', 'p@ss:/?#%']],
    ['ada', '%C3%BC%20+', ['ada', 'ü +']],
    ['ada%3Aadmin', 'pa:55', ['ada:admin', 'pa:55']],
  ])('user and password are percent-encoded: %s:%s (CONFIG-11)', (user, password, login) => {
    expect(read(`smtp://${user}:${password}@smtp.example.com`)).toMatchObject({ host: 'smtp.example.com', login });
  });

  it.each([
    '',
    'smtp',
    'smtp.example.com',
    'smtp.example.com:587',
    'ada:pa55word@smtp.example.com',
    'http://smtp.example.com',
    'smtp:smtp.example.com',
    'smtp://',
    'smtp:///x',
    'smtp://smtp.example.com/path',
    'smtp://smtp.example.com#x',
    'smtp://smtp.example.com:0',
    'smtp://smtp.example.com:65536',
    'smtp://smtp.example.com:port',
    'smtp://ada@smtp.example.com',
    'smtp://:pa55word@smtp.example.com',
    'smtp://ada:%zz@smtp.example.com',
    'smtp://ada:%ff@smtp.example.com',
    'smtp://ada:pa/55@smtp.example.com',
    'smtp://smtp..example.com',
    'smtp://-smtp.example.com',
    'smtp://smtp.example.com,other.example.com',
    'smtp://smtp%0d%0a.example.com',
    'smtp://[::1',
    'smtp://smtp.example.com?security=ssl',
    'smtp://smtp.example.com?security=',
    'smtp://smtp.example.com?Security=tls',
    'smtp://smtp.example.com?pool=true',
    'smtp://smtp.example.com?security=tls&tls.rejectUnauthorized=false',
    'smtp://smtp.example.com?security=none&security=none',
  ])('refuses %s (CONFIG-11, CONFIG-29)', (url) => {
    expect(read(url)).toBeNull();
  });

  it('refuses with a text that says the form, and nothing of what was given (CONFIG-24)', () => {
    const [problem] = smtpUrl.safeParse('smtp://ada:pa55word@smtp.example.com/x').error?.issues ?? [];
    expect(problem?.message).toMatch(/^must be smtp:\/\/user:password@host:port or smtps:.*\|none at will$/);
    expect(JSON.stringify(problem)).not.toContain('pa55');
  });

  it('a password is never printed', () => {
    const server = smtpUrl.parse('smtp://ada:pa55word@smtp.example.com');
    expect(JSON.stringify(server) + String(server.login?.password)).not.toContain('pa55');
  });
});

describe('defaultSecurity and mailPort', () => {
  it('a password leaves the machine encrypted or not at all (MAIL-8)', () => {
    const own = ['localhost', 'LOCALHOST', '127.0.0.1', '127.8.9.10', '::1'];
    const others = [
      'localhost.example.com',
      '127.0.0.1.example.com',
      '10.0.0.7',
      '::2',
      '::ffff:10.0.0.7',
      'x127.0.0.1',
    ];
    for (const host of own) expect([host, defaultSecurity({ host, hasLogin: true })]).toEqual([host, 'opportunistic']);
    for (const host of others) expect([host, defaultSecurity({ host, hasLogin: true })]).toEqual([host, 'starttls']);
    for (const host of [...own, ...others]) {
      expect(defaultSecurity({ host, hasLogin: false })).toBe('opportunistic');
      for (const hasLogin of [true, false]) expect(defaultSecurity({ host, port: 465, hasLogin })).toBe('tls');
    }
  });

  it('the port is that of RFC 8314', () => {
    expect((['tls', 'starttls', 'opportunistic', 'none'] as const).map(mailPort)).toEqual([465, 587, 587, 587]);
  });
});

describe('mailHost', () => {
  it.each([
    'localhost',
    'smtp.example.com',
    'a'.repeat(63),
    '10.0.0.7',
    '::1',
    'fe80::1',
    'mail-1.example',
    'mail_relay',
  ])('takes %s', (host) => {
    expect(mailHost.safeParse(host).success).toBe(true);
  });

  it.each([
    '',
    ' ',
    'smtp.example.com ',
    'smtp.example.com:25',
    'smtp://x',
    '[::1]',
    'a@b',
    'a/b',
    'a\r\nb',
    'a\0b',
    '.example.com',
    'example..com',
    'a'.repeat(64),
    `${'a'.repeat(63)}.`.repeat(4),
    'exämple.com',
  ])('refuses %j', (host) => {
    expect(mailHost.safeParse(host).success).toBe(false);
  });
});

describe('mailSender', () => {
  it.each([
    ['no-reply@example.com', null, 'no-reply@example.com'],
    ['  No-Reply@Example.COM ', null, 'no-reply@example.com'],
    ['<no-reply@example.com>', null, 'no-reply@example.com'],
    ['Example <no-reply@example.com>', 'Example', 'no-reply@example.com'],
    ['"Example, Ltd" <no-reply@example.com>', 'Example, Ltd', 'no-reply@example.com'],
    ['Exämple & Söhne <no-reply@exämple.com>', 'Exämple & Söhne', 'no-reply@xn--exmple-cua.com'],
    ['a@b.c <no-reply@example.com>', 'a@b.c', 'no-reply@example.com'],
  ])('takes %s, and what is shown of it is the same again (CONFIG-11)', (text, name, address) => {
    const sender = mailSender.parse(text);
    expect(sender).toEqual({ name, address });
    expect(mailSender.parse(shownSender(sender))).toEqual(sender);
  });

  it.each([
    '',
    'Example',
    'Example no-reply@example.com',
    'Example <no-reply>',
    'a@example.com, b@example.com',
    'A <a@example.com>, B <b@example.com>',
    'A <a@example.com> (x)',
    'A <a@example.com',
    'A\r\nBcc: evil@example.com <a@example.com>',
    'A <a@example.com>\nBcc: evil@example.com',
    'A\u202e <a@example.com>',
    'A\0 <a@example.com>',
    `${'x'.repeat(101)} <a@example.com>`,
    `${'x'.repeat(500)}@example.com`,
  ])('refuses %j (CONFIG-11, MAIL-3)', (text) => {
    expect(mailSender.safeParse(text).success).toBe(false);
  });
});
