import { z } from 'zod';
import { toTimestamp } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import { release } from '../../base/release.gen.ts';
import { endpoint, endpoints } from '../../http/endpoint.ts';
import { timestamp } from '../../http/schemas.ts';

const response = { 200: z.object({ status: z.string(), timestamp }) };

const areas = [
  { area: 'org', operationId: 'checkOrganizationHealth' },
  { area: 'users', operationId: 'checkUsersHealth' },
  { area: 'userGroups', operationId: 'checkGroupsHealth' },
] as const;

/** Health routes of each area, which only show that the process responds. Rules: ORG-30, USER-42, GROUP-18. */
export const areaHealth = endpoints(areas, ({ area, operationId }) =>
  endpoint({
    method: 'GET',
    path: `/${area}/health`,
    operationId,
    tag: 'Health',
    summary: 'Whether the service answers',
    policy: { who: 'anyone' },
    response,
    async handle({ clock }) {
      return { status: 'healthy', timestamp: toTimestamp(clock.now()) };
    },
  }),
);

/** Rule: RUN-4. */
export const checkLive = endpoint({
  method: 'GET',
  path: '/health/live',
  root: true,
  tag: 'Health',
  summary: 'Whether the process answers',
  policy: { who: 'anyone' },
  response,
  async handle({ clock }) {
    return { status: 'healthy', timestamp: toTimestamp(clock.now()) };
  },
});

/** Rules: RUN-4, FIT-100. */
export const checkReady = endpoint({
  method: 'GET',
  path: '/health/ready',
  root: true,
  tag: 'Health',
  summary: 'Whether the service can work: the store responds, and events are being relayed',
  policy: { who: 'anyone' },
  response: { 200: z.object({ status: z.string(), timestamp, version: z.string() }) },
  async handle({ clock, db, relays }) {
    try {
      await db.check();
    } catch {
      throw new ApiError('storeUnavailable', { headers: { 'retry-after': '5' } });
    }
    // A broker that is down is no reason for a load balancer to stop sending requests; a relay that has stopped needs a
    // restart.
    if (!relays.isAlive()) throw new ApiError('relayStopped', { headers: { 'retry-after': '5' } });
    return { status: 'healthy', timestamp: toTimestamp(clock.now()), version: release };
  },
});
