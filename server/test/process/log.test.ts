import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import type { Logger } from 'pino';
import { describe, expect, it } from 'vitest';
import { createRawTicket } from '../../src/features/identities/ticket.ts';
import { createRawLinkToken } from '../../src/features/links/link.ts';
import { createRawClientSecret } from '../../src/features/service-clients/service-client.ts';
import { createRawWebhookSecret } from '../../src/outbox/webhook-delivery/signature.ts';
import { createLog, maskCredentials } from '../../src/process/log.ts';

const jwt = `eyJhbGciOiJFZERTQSJ9.${Buffer.from('{"userId":"65f0c0ffee"}').toString('base64url')}.c2lnbmF0dXJl_-x`;
/** The secret of a link in a mail. */
const linkSecret = `lkl_${'Ab3-_'.repeat(8)}xyz`;
const hash = '$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b/dWRWJTmaaJObG';

/** Returns what a log writes while `use` runs. */
async function written(
  use: (log: Logger) => void,
  options: { isTTY?: boolean; logLevel?: 'info' | 'silent' } = {},
): Promise<string> {
  const out = Object.assign(new PassThrough(), { isTTY: options.isTTY ?? false });
  const chunks: Buffer[] = [];
  out.on('data', (chunk: Buffer) => chunks.push(chunk));
  use(await createLog({ logLevel: options.logLevel ?? 'info' }, out as unknown as NodeJS.WriteStream));
  out.end();
  await once(out, 'close');
  return Buffer.concat(chunks).toString();
}

describe('createLog', () => {
  it('writes one line of JSON for each entry, the level a word, the time ISO 8601 (RUN-6, FIT-102)', async () => {
    const text = await written((log) => {
      log.info({ port: 3000 }, 'first\nwith a break');
      log.warn('second');
      log.debug('not at this level');
    });
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { level: 'info', time: expect.stringMatching(/^\d{4}-.*Z$/), port: 3000, msg: 'first\nwith a break' },
      { level: 'warn', msg: 'second' },
    ]);
    expect(lines[0]).not.toHaveProperty('hostname');
  });

  it('writes for people on a terminal, and masks there too (RUN-6, PASSWORD-6)', async () => {
    const text = await written((log) => log.info({ password: 'Marble-Kettle-7' }, `signed in with ${jwt}`), {
      isTTY: true,
    });
    expect(text).toContain('signed in with [secret]');
    expect(text).not.toMatch(/^\{/);
    expect(text).not.toContain('Marble-Kettle');
  });

  it('writes one readable line for a request on a terminal, and masks there too (FIT-103)', async () => {
    const entry = { method: 'GET', route: '/x', path: `/api/v1/org/${jwt}`, status: 404, ms: 12, network: '::1' };
    const text = await written((log) => log.info({ requestId: 'r', ...entry, who: 'session of 65f0' }), {
      isTTY: true,
    });
    expect(stripVTControlCharacters(text)).toMatch(
      /^\d\d:\d\d:\d\d GET {4}\/api\/v1\/org\/\[secret\] 404 12 ms {2}session of 65f0, ::1\n$/,
    );
  });

  it('writes nothing when it is silent (CONFIG-17)', async () => {
    expect(await written((log) => log.fatal('anything'), { logLevel: 'silent' })).toBe('');
  });

  it.each(['authorization', 'password', 'accessToken', 'refreshToken', 'x-session-token', 'token', 'hash'])(
    'masks the field %s, by itself and in an object (PASSWORD-6)',
    async (field) => {
      const text = await written((log) => {
        log.info({ [field]: 'opaque-value', request: { [field]: 'opaque-value', kept: 'shown' } }, 'entry');
      });
      expect(text).not.toContain('opaque-value');
      expect(JSON.parse(text)).toMatchObject({ [field]: '[secret]', request: { [field]: '[secret]', kept: 'shown' } });
    },
  );

  it('masks what looks like a credential wherever it stands (PASSWORD-6)', async () => {
    const text = await written((log) => {
      log.info(`token ${jwt}`);
      log.info({ deep: { deeper: { url: `/org?token=${jwt}&x=1`, list: [`lkpat_${jwt}`, hash] } } }, 'nested');
      log.error({ err: new Error(`refused ${jwt} with ${hash}`) }, 'failed');
      log.info({ [jwt]: 'as a name' }, 'named');
      log.info(`line\n${jwt}\nlkpat_${jwt}\n"${hash}"\n`);
    });
    for (const line of text.trimEnd().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
    expect(text).not.toContain('eyJ');
    expect(text).not.toContain('argon2id');
    expect(text).not.toContain('RdescudvJCsgt3ub');
    expect(text).toContain('/org?token=[secret]&x=1');
  });

  it('masks the secret of a link, in whatever it stands (LINK-1, PASSWORD-6)', async () => {
    const link = `https://id.example.com/reset-password#token=${linkSecret}`;
    const text = await written((log) => {
      log.info(`mailed ${link}`);
      log.info({ deep: { url: link, list: [linkSecret, `Bearer ${linkSecret}`] } }, 'nested');
      log.error({ err: new Error(`550 not wanted: <a href="${link}">\r\n${linkSecret}`) }, 'failed');
      log.info({ [linkSecret]: encodeURIComponent(link) }, 'named');
    });
    for (const line of text.trimEnd().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
    expect(text).not.toContain('lkl_');
    expect(text).not.toContain(linkSecret.slice(4, 20));
    expect(text).toContain('mailed https://id.example.com/reset-password#token=[secret]');
  });

  it('masks the secret of a webhook (EVENT-25)', async () => {
    const secret = createRawWebhookSecret().expose();
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const text = await written((log) => log.info({ body: `{"secret":"${secret}"}` }, `for ${secret}`));
    expect(() => JSON.parse(text)).not.toThrow();
    expect(text).not.toContain(secret.slice(6, -1));
    expect(text).toContain('for [secret]');
  });

  it('masks the secret of a service client, in whatever it stands (SERVICE-7)', async () => {
    const secret = createRawClientSecret().expose();
    expect(secret).toMatch(/^lks_[\w-]{43}$/);
    const text = await written((log) => {
      log.info({ body: `client_id=a&client_secret=${secret}`, deep: { clientSecret: secret } }, `for ${secret}`);
      log.error({ err: new Error(`refused {"clientSecret":"${secret}"}`) }, 'failed');
    });
    for (const line of text.trimEnd().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
    expect(text).not.toContain('lks_');
    expect(text).not.toContain(secret.slice(4));
    expect(text).toContain('for [secret]');
  });

  it('masks tickets of single sign-on, in whatever they stand (AUTH-56)', async () => {
    const ticket = createRawTicket().expose();
    expect(ticket).toMatch(/^lkt_[\w-]{43}$/);
    const page = `https://id.example.com/sign-in#oidc=${ticket}&email=ada%40example.com`;
    const text = await written((log) => {
      log.info({ location: page, deep: { oidc: ticket } }, `leads to ${page}`);
      log.error({ err: new Error(`refused {"oidc":"${ticket}"}`) }, 'failed');
    });
    for (const line of text.trimEnd().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
    expect(text).not.toContain('lkt_');
    expect(text).not.toContain(ticket.slice(4));
    expect(text).toContain('#oidc=[secret]&email=');
  });

  it('masks what links really have for a secret (LINK-1)', () => {
    const [one, other] = [createRawLinkToken().expose(), createRawLinkToken().expose()];
    expect(one).toMatch(/^lkl_[\w-]{43}$/);
    expect(other).not.toBe(one);
    expect(maskCredentials(`${one}, ${other}.`)).toBe('[secret], [secret].');
  });
});

describe('maskCredentials', () => {
  it('masks tokens and leaves their display prefix, several on one line', () => {
    expect(maskCredentials(`lkpat_${jwt} and acme-corp_${jwt},${jwt}.`)).toBe(
      'lkpat_[secret] and acme-corp_[secret],[secret].',
    );
    expect(maskCredentials(`"${hash}"`)).toBe('"[secret]"');
  });

  it('masks the secrets of links in mails and of service clients, and tickets (STORE-8, SERVICE-7, AUTH-56)', () => {
    const random = 'Ab-_0'.repeat(8);
    const text = `#token=lkl_${random}xyz, "lks_${random}xyz", oidc=lkt_${random}xyz&x`;
    expect(maskCredentials(text)).toBe('#token=[secret], "[secret]", oidc=[secret]&x');
    expect(maskCredentials(`lkt_${random}xy`)).toBe(`lkt_${random}xy`);
  });

  it('leaves everything else alone', () => {
    const plain =
      'GET /api/v1/org 200 65f0c0ffee65f0c0ffee65f0 eyJ lkl_ lkl_x lks_ lks_x lkt_ lkt_x lk_ a.b.c argon2id v1.2.3';
    expect(maskCredentials(plain)).toBe(plain);
  });

  it('takes time that grows with the text only', () => {
    const startedAt = performance.now();
    for (const piece of ['eyJ', 'eyJaaaaaaaa.', 'a_', '$argon2id$', 'lkl_', 'lks_', 'lkt_'])
      maskCredentials(piece.repeat(100_000));
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});
