import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawConnection } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const mebibyte = 1_048_576;

/** A request that says it is large and stops before its last byte. */
function halfSent(path: string, headers: readonly string[], length = mebibyte): Buffer {
  const head = [`POST /api/v1${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json', ...headers];
  const announced = [...head, `Content-Length: ${length}`, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(announced), Buffer.alloc(length - 1, 0x20)]);
}

describe('bodies that never arrive whole (HTTP-30)', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  const open: RawConnection[] = [];

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(async () => {
    for (const connection of open) connection.destroy();
    await app.close();
  });

  /** Sends halves of requests and returns the statuses of those that got a response. */
  async function hold(count: number, bytes: Buffer): Promise<number[]> {
    const connections = Array.from({ length: count }, () => new RawConnection(app));
    open.push(...connections);
    const responded = connections.map(async (connection) => {
      const { answers: responses } = await connection.send(bytes).until((outcome) => outcome.answers.length > 0, 2_000);
      return responses[0]?.status ?? 0;
    });
    return Promise.all(responded);
  }

  const bearer = (client: Client) => [`Authorization: Bearer ${client.credential}`];

  it('429 with Retry-After: strangers of one network have 16 MiB, and small bodies go on', async () => {
    const statuses = await hold(20, halfSent('/userAccount/authenticate', []));
    expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array.from({ length: 16 }, () => 0), 429, 429, 429, 429]);
    expect((await app.signInTokens('grace@example.com')).status).toBe(200);
    expect((await app.anonymous.post('/userAccount/initAuth', {})).status).toBe(200);
  });

  it('429: so do people, each for themselves; others upload as ever (HTTP-33)', async () => {
    const statuses = await hold(18, halfSent('/users/by-ids', bearer(member)));
    expect(statuses.filter((status) => status === 429)).toHaveLength(2);
    const large = { userIds: Array.from({ length: 1_000 }, () => 'a'.repeat(24)) };
    const refused = await member.post('/users/by-ids', large);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5']);
    expect((await admin.post('/users/by-ids', large)).status).toBe(200);
    expect((await member.post('/users/by-ids', { userIds: [member.userId] })).status).toBe(200);
  });

  it('anyone who breaks off gives it back', async () => {
    for (const connection of open) connection.destroy();
    const large = { userIds: Array.from({ length: 1_000 }, () => 'a'.repeat(24)) };
    await expect.poll(async () => (await member.post('/users/by-ids', large)).status).toBe(200);
    for (let round = 0; round < 40; round += 1) expect((await member.post('/users/by-ids', large)).status).toBe(200);
  });
});
