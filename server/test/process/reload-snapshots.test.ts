import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { type LiveConfig, liveConfig } from '../../src/config/live-config.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { compose, type Service } from '../../src/process/compose.ts';
import { holdNext } from '../support/gates.ts';
import { claimsOf } from '../support/sign-in.ts';
import { type Json, organization, password } from '../support/test-app.ts';
import { TestClock } from '../support/test-clock.ts';

type MakeLive = (read: () => Config) => LiveConfig;

/** The mutant: one object whose parts are replaced, so that holders see them change. */
const mixing: MakeLive = (read) => {
  const current = { ...read() };
  let generation = 0;
  const listeners: ((config: Config) => void)[] = [];
  return {
    current,
    get generation() {
      return generation;
    },
    reload: () => {
      generation += 1;
      Object.assign(current, read());
      for (const listener of listeners) listener(current);
      return current;
    },
    onChange: (listener) => void listeners.push(listener),
  };
};

/** The other twin: it forgets to say that there is another snapshot. */
const uncounted: MakeLive = (read) => {
  const live = liveConfig(read);
  return {
    get current() {
      return live.current;
    },
    generation: 0,
    reload: () => live.reload(),
    onChange: (listener) => live.onChange(listener),
  };
};

let running: { readonly service: Service; readonly dataDir: string } | null = null;
afterEach(async () => {
  await running?.service.close();
  if (running) rmSync(running.dataDir, { recursive: true });
  running = null;
});

/** A service on a configuration that is kept in some way, and what is asked of it. */
async function start(makeLive: MakeLive) {
  const dataDir = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  const environment: Record<string, string> = { DATA_DIR: dataDir, RATE_LIMIT: 'off', LOG_LEVEL: 'silent' };
  const live = makeLive(() => loadConfig(environment));
  const service = await compose({ live, clock: new TestClock(), log: pino({ level: 'silent' }) });
  running = { service, dataDir };
  const call = async (method: 'GET' | 'POST', path: string, { token = '', body, headers = {} }: Json = {}) => {
    const authorization = token === '' ? {} : { authorization: `Bearer ${token}` };
    const payload = body === undefined ? {} : { payload: body };
    const url = `/api/v1${path}`;
    return service.app.inject({ method, url, headers: { ...authorization, ...headers }, ...payload });
  };
  const reload = (changes: Readonly<Record<string, string>>) => {
    Object.assign(environment, changes);
    service.services.reloadConfig();
  };
  await call('POST', '/org', { body: organization });
  const begun = await call('POST', '/userAccount/initAuth');
  const attempt = { method: 'password', credentials: { password }, email: organization.contactEmail };
  const headers = { 'x-session-token': String(begun.headers['x-session-token']) };
  const session: string = (await call('POST', '/userAccount/authenticate', { body: attempt, headers })).json()
    .accessToken;
  return { call, reload, session, db: service.services.db };
}

/** The names of the configurations that the parts of one answer are of. */
async function partsOfAnswer(makeLive: MakeLive): Promise<readonly [string, string]> {
  const { call, reload, session, db } = await start(makeLive);
  reload({ PAT_PREFIX: 'one', BASE_URL: 'https://one.example.net' });
  const gate = holdNext(db, 'transaction');
  const pending = call('POST', '/personal-access-tokens', { token: session, body: { name: 'held' } });
  await gate.arrived;
  reload({ PAT_PREFIX: 'two', BASE_URL: 'https://two.example.net' });
  gate.open();
  const response = await pending;
  expect(response.statusCode).toBe(201);
  const token: string = response.json().token.accessToken;
  return [token.split('_')[0] ?? '', claimsOf(token).iss];
}

describe('an answer that is under way when the configuration changes (CONFIG-26)', () => {
  it('201: is of the one configuration that it began with', async () => {
    expect(await partsOfAnswer(liveConfig)).toEqual(['one', 'https://one.example.net']);
  });

  it('would be of two of them if the snapshot were changed in place: this is seen', async () => {
    expect(await partsOfAnswer(mixing)).toEqual(['two', 'https://one.example.net']);
  });
});

/**
 * Returns the statuses of three calls with a token: before a reload that narrows its scopes, across it, and after it.
 */
async function statusesAcross(makeLive: MakeLive): Promise<readonly number[]> {
  const { call, reload, session, db } = await start(makeLive);
  const made = await call('POST', '/personal-access-tokens', { token: session, body: { name: 'used' } });
  const token: string = made.json().token.accessToken;
  const users = async () => (await call('GET', '/users', { token })).statusCode;
  // Anything that is written has verification ask the store again.
  const before = await users();
  await call('POST', '/personal-access-tokens', { token: session, body: { name: 'another' } });
  const gate = holdNext(db, 'first');
  const pending = users();
  await gate.arrived;
  reload({ MCP_SCOPES: 'org:read' });
  gate.open();
  await pending;
  return [before, await users(), await users()];
}

/** The same without anything under way. */
async function statusesAfter(makeLive: MakeLive): Promise<readonly number[]> {
  const { call, reload, session } = await start(makeLive);
  const made = await call('POST', '/personal-access-tokens', { token: session, body: { name: 'used' } });
  const token: string = made.json().token.accessToken;
  const users = async () => (await call('GET', '/users', { token })).statusCode;
  const before = [await users(), await users()];
  reload({ MCP_SCOPES: 'org:read' });
  return [...before, await users()];
}

describe('what verification keeps in memory (SCOPE-9, CONFIG-25)', () => {
  it('403: is forgotten when the configuration changes, at the very next call', async () => {
    expect(await statusesAfter(liveConfig)).toEqual([200, 200, 403]);
  });

  it('403: nothing is kept of a look-up that a reload overtook', async () => {
    expect(await statusesAcross(liveConfig)).toEqual([200, 403, 403]);
  });

  it('would be kept if a new snapshot did not count: this is seen', async () => {
    expect(await statusesAfter(uncounted)).toEqual([200, 200, 200]);
  });
});
