import { type DirectoryUnderTest, teamDirectoryConformance } from '../support/team-directory-conformance.ts';
import { TestApp } from '../support/test-app.ts';
import { TestClock } from '../support/test-clock.ts';

interface Backend {
  readonly url: string;
  know(user: { userId: string; orgId: string; name: string; email: string; isAdmin: boolean }): void;
  forget(userId: string): void;
  close(): Promise<void>;
}
type StartBackend = (options: { now: () => number; jwksUrl?: () => string; secret?: string }) => Promise<Backend>;

/** Scripts have no types: they run as they are. */
const script = new URL('../../../scripts/connector/backend.mjs', import.meta.url).href;
const { startConnectorBackend } = (await import(script)) as { startConnectorBackend: StartBackend };

const sharedSecret = 'kX9vQ2mZ7pL4wR8tB1nC6yD3sF5gH0jA';

/** Starts a service whose teams are in a connector backend, which knows the users. */
async function behindBackend(environment: Readonly<Record<string, string>>): Promise<DirectoryUnderTest> {
  const clock = new TestClock();
  let serviceUrl = '';
  const backend = await startConnectorBackend({
    now: () => clock.now(),
    ...('JWT_SECRET' in environment
      ? { secret: sharedSecret }
      : { jwksUrl: () => `${serviceUrl}/.well-known/jwks.json` }),
  });
  const app = await TestApp.start({ ...environment, CONNECTOR_BACKEND_URL: backend.url }, clock);
  serviceUrl = app.url;
  const settled = async () => {
    const { read } = app.services.db;
    const users = await read.selectFrom('users').selectAll().execute();
    const administrators = await read
      .selectFrom('group_members as m')
      .innerJoin('user_groups as g', 'g.id', 'm.group_id')
      .where('g.type', '=', 'admin')
      .select('m.user_id')
      .execute();
    for (const { id, org_id: orgId, full_name: name, email, is_deleted } of users) {
      const isAdmin = administrators.some(({ user_id }) => user_id === id);
      if (is_deleted) backend.forget(id);
      else backend.know({ userId: id, orgId, name, email, isAdmin });
    }
  };
  const close = async () => {
    await app.close();
    await backend.close();
  };
  return { app, settled, close };
}

teamDirectoryConformance('behind a connector backend that verifies by public keys (TEAM-1 to TEAM-3)', () =>
  behindBackend({}),
);
teamDirectoryConformance('behind a connector backend that verifies by a shared secret (AUTH-37)', () =>
  behindBackend({ JWT_ALGORITHM: 'HS256', JWT_SECRET: sharedSecret }),
);
