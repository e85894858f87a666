import { CloudEvent } from 'cloudevents';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { NatsServer } from '../../../harness/nats-server.ts';
import { RedisServer } from '../../../harness/redis-server.ts';
import { firstOnes } from '../support/streamed-events.ts';
import { type Json, TestApp } from '../support/test-app.ts';

interface Running {
  readonly server: NatsServer | RedisServer;
  /** The values that a stream holds, parsed, with their keys. */
  values(stream: string): Promise<readonly { readonly key: string; readonly value: Json }[]>;
}

const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close();
});

const kinds = {
  NATS: async (): Promise<Running> => {
    const server = await NatsServer.begin({ user: 'latchkey', password: 'pa55-of-the-broker' });
    return {
      server,
      values: async (stream) => {
        const messages = await server.messages(stream);
        return messages.map(({ body, headers }) => ({ key: headers['Event-Key'] ?? '', value: JSON.parse(body) }));
      },
    };
  },
  Redis: async (): Promise<Running> => {
    const server = await RedisServer.begin({ password: 'pa55-of-the-broker' });
    return {
      server,
      values: async (stream) => {
        const entries = await server.entries(stream);
        return entries.map(({ key, value }) => ({ key, value: JSON.parse(value) }));
      },
    };
  },
};

async function begin(kind: keyof typeof kinds): Promise<Running> {
  const running = await kinds[kind]();
  closing.push(running.server);
  return running;
}

async function start(environment: Readonly<Record<string, string>>): Promise<TestApp> {
  const app = await TestApp.start(environment);
  app.keepSecret('pa55-of-the-broker');
  closing.push(app);
  return app;
}

describe.each(['NATS', 'Redis'] as const)('a service with a broker: %s', (kind) => {
  it('sends what happened there, in order, by organization, while the broker comes and goes (EVENT-2, EVENT-16, EVENT-17)', async () => {
    const { server, values } = await begin(kind);
    const app = await start({ EVENTS_URL: server.url });
    const admin = await app.setUp();
    await vi.waitUntil(async () => (await values('entity-events')).length === 2, { timeout: 10_000 });
    await server.kill();
    const emails = Array.from({ length: 30 }, (_, place) => `u${place}@example.com`);
    for (const email of emails) expect((await admin.post('/users', { fullName: 'U', email })).status).toBe(201);
    await server.start();
    await vi.waitUntil(
      async () => {
        app.clock.advance(1_000);
        return firstOnes((await values('entity-events')).map(({ value }) => value.id)).length === 32;
      },
      { timeout: 15_000, interval: 100 },
    );
    const written = await app.events();
    const arrived = await values('entity-events');
    expect(firstOnes(arrived.map(({ value }) => value.id))).toEqual(written.map(({ id }) => id));
    expect(new Set(arrived.map(({ key }) => key))).toEqual(new Set([written[0].org_id]));
    expect(arrived[0]?.value).toEqual({
      eventType: 'orgCreated',
      timestamp: written[0].occurred_at,
      payload: written[0].payload,
      id: written[0].id,
      sequence: written[0].sequence,
    });
    const audited = await app.audit();
    await vi.waitUntil(async () => (await values('audit-events')).length >= audited.length, { timeout: 10_000 });
    const records = await values('audit-events');
    expect(firstOnes(records.map(({ value }) => value.sequence))).toEqual(audited.map(({ sequence }) => sequence));
  });

  it('sends CloudEvents where the configuration says so, from a reload on (EVENT-21, CONFIG-25, CONFIG-30)', async () => {
    const { server, values } = await begin(kind);
    const app = await start({ EVENTS_URL: server.url, BASE_URL: 'https://id.example' });
    const admin = await app.setUp();
    await vi.waitUntil(async () => (await values('entity-events')).length === 2, { timeout: 10_000 });
    app.environment['EVENTS_FORMAT'] = 'cloudevents';
    expect((await app.service(['FETCH_CONFIG']).post('/users/updateAppConfig')).status).toBe(200);
    expect((await admin.patch('/org', { registeredName: 'Analytical Engines' })).status).toBe(200);
    await vi.waitUntil(async () => (await values('entity-events')).length === 3, { timeout: 10_000 });
    const [first, , third] = await values('entity-events');
    expect(first?.value.eventType).toBe('orgCreated');
    const event = new CloudEvent(third?.value, true);
    expect(event).toMatchObject({ source: 'https://id.example', type: 'io.latchkey.orgUpdated' });
    expect(event.data).toMatchObject({ registeredName: 'Analytical Engines' });
    const { body } = await admin.get('/events');
    expect(body.events.at(-1)).toMatchObject({ eventType: 'orgUpdated', id: event.id });
  });
});

it('a reload exchanges the broker (CONFIG-10, CONFIG-25)', async () => {
  const [nats, redis] = [await begin('NATS'), await begin('Redis')];
  const app = await start({ EVENTS_URL: nats.server.url });
  const admin = await app.setUp();
  await vi.waitUntil(async () => (await nats.values('entity-events')).length === 2, { timeout: 10_000 });
  app.environment['EVENTS_URL'] = redis.server.url;
  expect((await app.service(['FETCH_CONFIG']).post('/users/updateAppConfig')).status).toBe(200);
  expect((await admin.patch('/org', { registeredName: 'Analytical Engines' })).status).toBe(200);
  await vi.waitUntil(
    async () => {
      app.clock.advance(1_000);
      return (await redis.values('entity-events')).length > 0;
    },
    { timeout: 10_000, interval: 100 },
  );
  const told = (await redis.values('entity-events')).map(({ value }) => value.eventType);
  expect(firstOnes(told)).toEqual(['orgUpdated']);
  expect(await nats.values('entity-events')).toHaveLength(2);
});
