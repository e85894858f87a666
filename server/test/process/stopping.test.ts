import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addManyUsers } from '../support/many-users.ts';
import { RawConnection, requestText } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const exists = requestText('GET /api/v1/org/exists HTTP/1.1');

describe('a service that stops (RUN-7)', () => {
  let app: TestApp;
  let admin: Client;

  beforeEach(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterEach(() => app.close());

  /** Waits until all that will come has come. */
  const answerOn = async (connection: RawConnection) => (await connection.closed()).answers.map(({ status }) => status);

  it('200: a request that was sent and not read yet is answered, on a new connection and on a kept one', async () => {
    const arrived = once(app.app.server, 'connection');
    const fresh = new RawConnection(app);
    await Promise.all([arrived, once(fresh.socket, 'connect')]);
    const kept = new RawConnection(app).send(exists);
    await kept.until(({ answers: responses }) => responses.length === 1);
    for (const connection of [fresh, kept]) connection.send(exists);
    const stopped = app.stop();
    expect([await answerOn(fresh), await answerOn(kept)]).toEqual([[200], [200, 200]]);
    await stopped;
  });

  it('200: so are those whose connection no one has taken in yet', async () => {
    const waiting = Array.from({ length: 30 }, () => new RawConnection(app));
    const sent = waiting.map(async (connection) => {
      await once(connection.socket, 'connect');
      connection.send(exists);
    });
    await Promise.all(sent);
    const stopped = app.stop();
    expect(await Promise.all(waiting.map(answerOn))).toEqual(waiting.map(() => [200]));
    await stopped;
  });

  it('200: a long answer arrives whole, however slowly it is read', async () => {
    // More than the operating system keeps for a reader.
    const newUser = (number: number) => ({ email: `user${number}@example.com`, fullName: 'x'.repeat(255) });
    const userIds = await addManyUsers(app, 18_000, newUser);
    const body = JSON.stringify({ userIds });
    const headers = [
      'Host: x',
      `Authorization: Bearer ${admin.credential}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ];
    const reader = new RawConnection(app);
    reader.socket.pause();
    const responded = once(app.app.server, 'request').then(([, response]) => once(response, 'prefinish'));
    reader.send(requestText('POST /api/v1/users/by-ids HTTP/1.1', headers, body));
    await responded;
    const stopped = app.stop();
    // Far longer than what is idle has.
    await setTimeout(300);
    const ended = once(reader.socket, 'end');
    reader.socket.resume();
    await ended;
    const { answers: responses } = reader.outcome;
    expect([responses[0]?.status, responses[0]?.body?.length]).toEqual([200, userIds.length]);
    await stopped;
  });

  it('connections on which nothing happens keep no one waiting', async () => {
    const silent = new RawConnection(app);
    const idle = new RawConnection(app).send(exists);
    await idle.until(({ answers: responses }) => responses.length === 1);
    const half = new RawConnection(app).send(exists.slice(0, 20));
    await setTimeout(20);
    const stopped = app.stop();
    expect((await silent.closed()).closed).toBe(true);
    expect((await idle.closed()).closed).toBe(true);
    // A client in the middle of a request is waited for.
    half.send(exists.slice(20));
    expect(await answerOn(half)).toEqual([200]);
    await stopped;
  });
});
