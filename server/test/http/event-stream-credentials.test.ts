import { setTimeout } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { day, minute, second } from '../../src/base/clock.ts';
import { EventReader, MonotonicClock } from '../support/event-reader.ts';
import { basic, formTo, issuedTo, registerService } from '../support/service-clients.ts';
import { type Client, password, TestApp } from '../support/test-app.ts';

const beatMs = 15 * second;
const secretName = 'SCOPED_JWT_SECRET';

let app: TestApp;
let admin: Client;
let monotonic: MonotonicClock;
const readers: EventReader[] = [];
/** Number of streams that wait for the next event: their deadline by the monotonic clock is fixed. */
let waiting = 0;

beforeAll(async () => {
  app = await TestApp.start();
  await app.setUp();
  const { eventWatch } = app.services;
  const wait = eventWatch.wait.bind(eventWatch);
  eventWatch.wait = async (asked) => {
    if (asked.msMax !== beatMs) return wait(asked);
    waiting += 1;
    return wait(asked).finally(() => {
      waiting -= 1;
    });
  };
});
beforeEach(async () => {
  // Another one may have lasted no longer than the test before.
  admin = await app.signIn('ada@example.com');
  monotonic = new MonotonicClock();
});
afterEach(async () => {
  await Promise.all(readers.splice(0).map((reader) => reader.leave()));
  monotonic.restore();
});
afterAll(() => app.close());

let users = 0;
function freshEmail(): string {
  users += 1;
  return `person-${users}@example.com`;
}

async function open(client: Client): Promise<EventReader> {
  const reader = await EventReader.open(app, client);
  readers.push(reader);
  await reader.take((await app.events()).length);
  return reader;
}

/** Lets time go by for streams that have come to wait: for one that has not yet, it would begin later. */
async function pass(ms: number): Promise<void> {
  await vi.waitUntil(() => waiting === readers.filter(({ ended }) => ended === null).length);
  monotonic.advance(ms);
}

/** A reader of events, and the change that ends the right to read. */
interface Ending {
  readonly client: Client;
  readonly end: () => Promise<unknown>;
}

/** Creates another administrator, and a function that signs the same user in once more. */
async function boss(): Promise<{ client: Client; signIn: () => Promise<Client> }> {
  const email = freshEmail();
  const client = await app.member(admin, email);
  await app.promote(client.userId);
  return { client, signIn: () => app.signIn(email) };
}

async function serviceWithToken() {
  const service = await registerService(admin, ['EVENTS_READ']);
  return { service, client: (await issuedTo(app, service)) as Client };
}

const endings: Readonly<Record<string, () => Promise<Ending>>> = {
  'a personal access token is revoked (PAT-23)': async () => {
    const client = await admin.token();
    return { client, end: () => admin.delete(`/personal-access-tokens/${client.tokenId}`) };
  },
  'a personal access token is over': async () => {
    const client = await admin.token({ expiryDays: 30 });
    return { client, end: async () => app.clock.advance(30 * day) };
  },
  'its owner signs out': async () => {
    const { client } = await boss();
    return { client, end: () => client.post('/userAccount/logout/manual', {}) };
  },
  'its session is ended from elsewhere': async () => {
    const { client, signIn } = await boss();
    const { sessions } = (await client.get('/userAccount/sessions')).body;
    const { id } = sessions.find(({ isCurrent }: { isCurrent: boolean }) => isCurrent);
    const other = await signIn();
    return { client, end: () => other.delete(`/userAccount/sessions/${id}`) };
  },
  'its owner chooses another password': async () => {
    const { client, signIn } = await boss();
    const other = await signIn();
    const body = { currentPassword: password, newPassword: 'Brand-New-Horse-8' };
    return { client, end: () => other.post('/userAccount/password/reset', body) };
  },
  'an administrator ends its sessions (SESSION-8)': async () => {
    const { client } = await boss();
    return { client, end: () => admin.delete(`/users/${client.userId}/sessions`) };
  },
  'an administrator revokes the tokens of its owner (SESSION-9)': async () => {
    const { client } = await boss();
    const token = await client.token();
    return { client: token, end: () => admin.delete(`/users/${client.userId}/personal-access-tokens`) };
  },
  'its owner chooses another password and revokes the tokens (SESSION-2)': async () => {
    const { client } = await boss();
    const token = await client.token();
    const body = { currentPassword: password, newPassword: 'Brand-New-Horse-8', revokeTokens: true };
    return { client: token, end: () => client.post('/userAccount/password/reset', body) };
  },
  'a session is over': async () => {
    const { client } = await boss();
    return { client, end: async () => app.clock.advance(60 * day) };
  },
  'its owner is no administrator any more, by session': async () => {
    const { client } = await boss();
    return { client, end: () => app.demote(client.userId) };
  },
  'its owner is no administrator any more, by token': async () => {
    const client = await (await boss()).client.token();
    return { client, end: () => app.demote(client.userId) };
  },
  'its owner is deleted, which is an event of its own': async () => {
    const { client } = await boss();
    const end = async () => {
      await app.demote(client.userId);
      await app.deleteUser(client.userId);
    };
    return { client, end };
  },
  'a service client is deleted': async () => {
    const { service, client } = await serviceWithToken();
    return { client, end: () => admin.delete(`/service-clients/${service.clientId}`) };
  },
  'a scoped token is revoked': async () => {
    const { service, client } = await serviceWithToken();
    return { client, end: () => formTo(app)('/oauth2/revoke', { token: client.credential ?? '' }, basic(service)) };
  },
  'a scoped token is over': async () => {
    const { client } = await serviceWithToken();
    return { client, end: async () => app.clock.advance(day) };
  },
  'a self-signed token is over': async () => {
    return { client: app.service(['EVENTS_READ']), end: async () => app.clock.advance(60 * minute) };
  },
  'the secret that services share is another': async () => {
    const end = async () => {
      app.environment[secretName] = 'quite-another-secret-of-services-4712';
      app.services.reloadConfig();
    };
    return { client: app.service(['EVENTS_READ']), end };
  },
};

/** Writes an event with a service that continues, whatever happened to the others. */
async function writeEvent(): Promise<void> {
  const { status } = await (await app.signIn('ada@example.com')).post('/users', {
    fullName: 'Late',
    email: freshEmail(),
  });
  expect(status).toBe(201);
}

describe.each(Object.entries(endings))('a stream ends when %s (EVENT-14)', (_, make) => {
  let usual = '';
  beforeEach(() => {
    usual = app.environment[secretName] ?? '';
  });
  afterEach(() => {
    app.environment[secretName] = usual;
    app.services.reloadConfig();
  });

  it('before the next event, which is not told', async () => {
    const { client, end } = await make();
    const reader = await open(client);
    const told = reader.ids;
    await end();
    await writeEvent();
    expect(await reader.over()).toBe('orderly');
    expect(reader.ids).toEqual(told);
  });

  it('after 15 seconds at the latest, where nothing happens', async () => {
    const { client, end } = await make();
    const reader = await open(client);
    const told = reader.text;
    await end();
    await pass(beatMs);
    expect(await reader.over()).toBe('orderly');
    expect(reader.text).toBe(told);
    // The reader gets the reason when it reconnects.
    const again = await EventReader.open(app, client);
    expect([401, 403]).toContain(again.status);
    await again.leave();
  });
});

describe('a stream goes on (EVENT-14)', () => {
  it('for anyone who may still read: a comment each 15 seconds, and none before', async () => {
    const clients = [admin, await admin.token(), (await serviceWithToken()).client, app.service(['EVENTS_READ'])];
    const streams = await Promise.all(clients.map(open));
    for (const beat of [1, 2, 3]) {
      await pass(beatMs - 5 * second);
      // Far longer than it takes until something is seen.
      await setTimeout(200);
      expect(streams.map(({ comments }) => comments)).toEqual(streams.map(() => beat - 1));
      await pass(5 * second);
      await vi.waitUntil(() => streams.every(({ comments }) => comments === beat));
    }
    await writeEvent();
    const last = (await app.events()).at(-1).sequence;
    for (const reader of streams) {
      await vi.waitUntil(() => reader.ids.at(-1) === last);
      expect(reader.ended).toBeNull();
    }
  });

  it('ends between two events that are told at once, where the second comes after the end', async () => {
    const token = await admin.token();
    const reader = await open(token);
    const told = reader.ids.length;
    const { db, clock } = app.services;
    const { org_id } = await db.read.selectFrom('outbox').selectAll().limit(1).executeTakeFirstOrThrow();
    const next = (await app.events()).at(-1).sequence + 1;
    // One commit that revokes the token and tells of something.
    await db.transaction(async (tx) => {
      const row = { id: 'f'.repeat(24), org_id, event_type: 'userAdded', occurred_at: clock.now(), payload: '{}' };
      await tx
        .insertInto('outbox')
        .values({ ...row, sequence: next })
        .execute();
      await tx.updateTable('counters').set({ value: next }).where('name', '=', 'event').execute();
      await tx
        .updateTable('personal_access_tokens')
        .set({ revoked_at: clock.now() })
        .where('id', '=', token.tokenId)
        .execute();
    });
    expect([await reader.over(), reader.ids.length]).toEqual(['orderly', told]);
  });

  it('the connection of a stream that ended can be used again (HTTP-28)', async () => {
    const token = await admin.token();
    const reader = await open(token);
    await admin.delete(`/personal-access-tokens/${token.tokenId}`);
    await pass(beatMs);
    expect(await reader.over()).toBe('orderly');
    expect((await token.get('/events')).status).toBe(401);
  });

  it('for a service when the organization is deleted, of which it is told; for people it ends (ORG-26)', async () => {
    const streams = await Promise.all([admin, await admin.token(), app.service(['EVENTS_READ'])].map(open));
    const [bySession, byToken, ofService] = streams;
    await app.deleteOrganization();
    await vi.waitUntil(() => ofService?.events.at(-1)?.event === 'orgDeleted');
    for (const reader of [bySession, byToken]) {
      expect(await reader?.over()).toBe('orderly');
      expect(reader?.text).not.toContain('orgDeleted');
    }
    await pass(beatMs);
    await vi.waitUntil(() => ofService?.comments === 1);
    expect(ofService?.ended).toBeNull();
  });
});
