import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { FakeBackend, responseBytes } from '../support/fake-backend.ts';
import { compactJwt, hmac } from '../support/jwt.ts';
import { linkIn, MailServer } from '../support/mail-server.ts';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../support/server-process.ts';
import { claimsOf } from '../support/sign-in.ts';
import type { Json } from '../support/test-app.ts';

beforeAll(ensureServerIsBuilt);
// Two hundred reloads of a server that is busy take a while where the machine is busy, too.
vi.setConfig({ testTimeout: 120_000 });

const reloads = 200;
/** Minimum number of requests of each kind during reloads. */
const callsMin = 10;
const names = ['one', 'two'] as const;
type Name = (typeof names)[number];
const sharedSecret = 'tests-share-this-with-services-4711';
const slowMs = 30;

interface Outside {
  readonly backend: FakeBackend;
  readonly mail: MailServer;
}
const outside = new Map<Name, Outside>();
afterEach(async () => {
  for (const { backend, mail } of outside.values()) await Promise.all([backend.stop(), mail.stop()]);
  outside.clear();
});

/** A backend that takes its time, and a mail server that does. */
async function startOutside(name: Name): Promise<void> {
  const body = JSON.stringify({ status: 'success', teams: [name] });
  const backend = await FakeBackend.start((socket) => {
    setTimeout(() => socket.write(responseBytes(200, body, ['content-type: application/json'])), slowMs);
  });
  const mail = await MailServer.start();
  mail.faults = { delayMs: slowMs };
  outside.set(name, { backend, mail });
}

/** A whole configuration of which every part tells its name. */
function configurationOf(name: Name): string {
  const { backend, mail } = outside.get(name) as Outside;
  const url = `https://${name}.example.net`;
  const urls = { BASE_URL: url, FRONTEND_URL: url, AUTH_BACKEND_URL: url, COMMUNICATION_BACKEND_URL: url };
  const clients = { CONNECTOR_BACKEND_URL: backend.url, SMTP_URL: mail.url, MAIL_FROM: `from@${name}.example.net` };
  return JSON.stringify({ ...urls, ...clients, PAT_PREFIX: name, PAT_PREFIXES_ACCEPTED: names.join() });
}

const broken = [
  (whole: string) => whole.slice(0, -20),
  (whole: string) => whole.replace('"https://', '"ftp://'),
  () => '{ "NO_SUCH": "variable" }',
];

/** The name of the configuration that an address is of. */
const nameIn = (url: string) => /(one|two)\.example\.net/.exec(url)?.[1];

/** Has a server read its configuration again and again, by signal and by route in turn. */
class Reloader {
  readonly #server: ServerProcess;
  readonly #file: string;
  #done = 0;
  #isKept = 0;
  #current: Name = 'one';

  constructor(server: ServerProcess, file: string) {
    this.#server = server;
    this.#file = file;
    server.program.stdout.on('data', (text: string) => {
      this.#done += text.split('configuration reloaded').length - 1;
      this.#isKept += text.split('the old configuration stays').length - 1;
    });
  }

  get current(): Name {
    return this.#current;
  }

  /** Writes the next file and waits until the server has read it. */
  async next(count: number): Promise<void> {
    const next = names[count % 2] as Name;
    const spoil = count % 4 === 3 ? broken[count % broken.length] : undefined;
    const whole = configurationOf(next);
    writeFileSync(`${this.#file}.new`, spoil ? spoil(whole) : whole);
    renameSync(`${this.#file}.new`, this.#file);
    if (!spoil) this.#current = next;
    await (count % 3 === 0 ? this.#byRoute(spoil !== undefined) : this.#bySignal(spoil !== undefined));
  }

  async #byRoute(isBroken: boolean): Promise<void> {
    const claims = { scopes: ['FETCH_CONFIG'], exp: Math.floor(Date.now() / 1_000) + 600 };
    const token = compactJwt({ alg: 'HS256' }, claims, hmac(sharedSecret));
    const { status, body } = await this.#server.call('POST', '/users/updateAppConfig', { token });
    const told = new Set(isBroken ? [] : Object.values<string>(body.config).map(nameIn));
    const isRight = isBroken ? status === 400 : told.size === 1 && told.has(this.#current);
    if (!isRight) throw new Error(`a reload was answered ${status} ${JSON.stringify(body)}`);
  }

  async #bySignal(isBroken: boolean): Promise<void> {
    const before = isBroken ? this.#isKept : this.#done;
    this.#server.signal('SIGHUP');
    await vi.waitUntil(() => (isBroken ? this.#isKept : this.#done) > before, { timeout: 20_000, interval: 2 });
  }
}

/** Requests that users make during reloads; each throws for a wrong response. */
function kindsOf(server: ServerProcess, session: string, token: string): Record<string, () => Promise<void>> {
  let invitees = 0;
  const called = async (
    expected: number,
    ...[method, path, options]: Parameters<ServerProcess['call']>
  ): Promise<Json> => {
    const { status, body } = await server.call(method, path, options);
    expect([method, path, status, status === expected ? null : body]).toEqual([method, path, expected, null]);
    return body;
  };
  return {
    verification: async () => {
      for (const prefix of ['', 'one_', 'two_']) await called(200, 'GET', '/org', { token: prefix + token });
    },
    creation: async () => {
      const { accessToken } = (
        await called(201, 'POST', '/personal-access-tokens', { token: session, body: { name: 'x' } })
      ).token;
      expect(accessToken.split('_')[0]).toBe(nameIn(claimsOf(accessToken).iss));
    },
    exchange: async () => {
      const { teams } = await called(200, 'GET', '/teams/user/teams', { token: session });
      expect(names).toContain(teams[0]);
    },
    change: async () => {
      const body = { name: 'Research' };
      await called(200, 'POST', '/teams', { token, body });
    },
    invitation: async () => {
      invitees += 1;
      const emails = Array.from({ length: 6 }, (_, place) => `guest-${place}@of-${invitees}.example.com`);
      await called(200, 'POST', '/users/bulk/invite', { token: session, body: { emails } });
    },
    signIn: async () => {
      expect(names).toContain(nameIn(claimsOf((await server.signIn()).accessToken).iss));
    },
  };
}

/** Expects that all mails of one request came from one server, with one sender and one address in their links. */
function expectWholeMails(): void {
  const byGuestList = new Map<string, Set<string>>();
  let count = 0;
  for (const [name, { mail }] of outside) {
    for (const received of mail.mails) {
      const list = received.to[0]?.split('@')[1] ?? '';
      const parts = `${name} ${nameIn(received.sender)} ${nameIn(linkIn(received))}`;
      byGuestList.set(list, (byGuestList.get(list) ?? new Set()).add(parts));
      expect(nameIn(received.sender)).toBe(name);
      count += 1;
    }
  }
  for (const [list, kinds] of byGuestList) expect([list, [...kinds]]).toEqual([list, [expect.any(String)]]);
  expect(count).toBe(byGuestList.size * 6);
  expect(byGuestList.size).toBeGreaterThanOrEqual(callsMin);
}

describe('D9: 200 reloads under load, broken files among them', () => {
  it('fail no request and mix no configurations, by SIGHUP and by the route (CONFIG-25 to CONFIG-27, RUN-7)', () =>
    withDirectory(async (dataDir) => {
      for (const name of names) await startOutside(name);
      const file = join(dataDir, 'latchkey.config.json');
      writeFileSync(file, configurationOf('one'));
      const environment = { DATA_DIR: dataDir, CONFIG_FILE: file, RATE_LIMIT: 'off', SCOPED_JWT_SECRET: sharedSecret };
      const server = await ServerProcess.start(environment);
      const session = await server.setUp();
      const made = await server.call('POST', '/personal-access-tokens', { token: session, body: { name: 'used' } });
      const token = made.body.token.accessToken.replace('one_', '');

      const counts: Record<string, number> = {};
      const over = new AbortController();
      const kinds = Object.entries(kindsOf(server, session, token));
      const callers = kinds.map(async ([kind, act]) => {
        for (counts[kind] = 0; !over.signal.aborted; counts[kind] += 1) await act();
      });
      const reloader = new Reloader(server, file);
      const reloading = (async () => {
        const isEnough = () => kinds.every(([kind]) => (counts[kind] ?? 0) >= callsMin);
        let count = 0;
        for (; count < reloads || !isEnough(); count += 1) await reloader.next(count);
        return count;
      })();
      // The first of them to fail ends all, with what it has to say.
      const done = await Promise.race([reloading, Promise.all(callers).then(() => 0)]).finally(() => {
        over.abort();
      });
      await Promise.all(callers);
      expect(done).toBeGreaterThanOrEqual(reloads);
      expectWholeMails();

      const other = outside.get(reloader.current === 'one' ? 'two' : 'one');
      await vi.waitUntil(() => other?.backend.sockets.size === 0 && other.mail.open === 0, { timeout: 10_000 });
      const { code, stdout, stderr } = await server.end('SIGTERM');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const lines = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      // The store of the tests is fast, and not safe; and tests may run as root.
      const expected =
        /^(the old configuration stays|PostgreSQL may lose what it acknowledges.*|the server runs as root: .*)$/;
      const warnings = lines.filter(({ level, msg }) => level !== 'info' && !expected.test(msg));
      expect(warnings).toEqual([]);
      for (const { status } of lines) expect(status ?? 200).toBeLessThan(500);
    }));
});
