import { randomBytes } from 'node:crypto';
import { type Client, TestApp } from './test-app.ts';
import { TestClock } from './test-clock.ts';
import { databaseUrl, isOnPostgres } from './test-store.ts';

type Environment = Readonly<Record<string, string>>;

/** Two services on one database of PostgreSQL, with one clock. What holds for two holds for more. */
export class TwoNodes {
  readonly a: TestApp;
  readonly b: TestApp;

  private constructor(a: TestApp, b: TestApp) {
    this.a = a;
    this.b = b;
  }

  /** Starts both; request limits are off unless the environment says otherwise. Throws where no PostgreSQL is named. */
  static async start(environment: Environment = {}, clock = new TestClock()): Promise<TwoNodes> {
    requirePostgres();
    const shared = { ENCRYPTION_KEY: randomBytes(32).toString('hex'), ...environment };
    const a = await TestApp.start(shared, clock);
    try {
      return new TwoNodes(a, await TwoNodes.another(a, environment));
    } catch (error) {
      await a.close();
      throw error;
    }
  }

  /** Starts one more service on the database of another one. */
  static another(app: TestApp, environment: Environment = {}): Promise<TestApp> {
    const { ENCRYPTION_KEY = '' } = app.environment;
    return TestApp.start({ ENCRYPTION_KEY, ...environment, DATABASE_URL: databaseUrl(app.dataDir) }, app.clock);
  }

  get both(): readonly [TestApp, TestApp] {
    return [this.a, this.b];
  }

  /** Returns the caller of one node as a caller of the other. */
  atB({ credential }: Client): Client {
    return this.b.with(credential);
  }

  async close(): Promise<void> {
    await this.b.close();
    await this.a.close();
  }
}

/**
 * Asks again while there is too much to do at once: two services and all who call them are one process here, which a
 * busy machine may make wait.
 */
export async function insist<T>(ask: () => Promise<T>, statusOf: (response: T) => number): Promise<T> {
  for (;;) {
    const response = await ask();
    if (statusOf(response) !== 503) return response;
  }
}

/** Tests of several nodes prove nothing on a store that only one process serves from. */
function requirePostgres(): void {
  if (isOnPostgres) return;
  throw new Error('several nodes need PostgreSQL: set LATCHKEY_TEST_POSTGRES to the address of one that tests may use');
}
