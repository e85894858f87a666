import type { Row } from './rows.ts';

/**
 * The rows that the benchmark measures, some of them in parts. A `load` row compares the throughput of two servers under
 * the same load and its budget is the least ratio; everywhere else the budget is the most: processor time of one call
 * (`cpu`, microseconds), one latency over another (`turns`), by how much two latencies differ (`timing`, percent), what a
 * long list or invitation takes (`list`, `invite`, in the row's unit), how many statements more (`statements`), how fast
 * events go out (`relay`: the least rate, the most lag), what a call costs over the same request without (`calls`), a figure
 * of another kind in the row's unit (`figure`). `growth` is as `load`, of one server on two stores. A row without a budget
 * is there for orientation.
 */
export const rows: readonly Row[] = [
  {
    id: 'P1',
    kind: 'load',
    what: 'GET /users/:id with a token',
    subject: 'latchkey',
    peer: 'bare-fastify',
    budget: 0.65,
  },
  { id: 'P2', kind: 'load', what: 'GET /users/:id with a token', subject: 'latchkey', peer: 'better-auth', budget: 14 },
  {
    id: 'P3',
    kind: 'load',
    what: 'GET /users/:id, token, PostgreSQL',
    subject: 'latchkey-postgres',
    peer: 'bare-fastify',
    budget: 0.35,
  },
  {
    id: 'P4',
    kind: 'growth',
    what: '1,000,000 tokens, 100,000 users',
    peer: '1,000 and 100',
    budget: 0.9,
  },
  { id: 'P5', kind: 'cpu', what: 'CPU of one verification', subject: 'latchkey', peer: 'no verification', budget: 15 },
  {
    id: 'P6',
    kind: 'figure',
    what: 'checks that succeed after revocation',
    part: 'late',
    tries: 10_000,
    unit: 'of 10,000 races',
    budget: 0,
  },
  {
    id: 'P7',
    kind: 'turns',
    what: 'GET /users/:id, p99 while people sign in',
    subject: 'latchkey',
    peer: 'no sign-ins',
    budget: 3,
  },
  {
    id: 'P8',
    kind: 'turns',
    what: 'GET /users/:id, p99 during uploads',
    subject: 'latchkey',
    peer: 'no uploads',
    budget: 3,
  },
  { id: 'P9', kind: 'list', what: 'GET /users, first byte', part: 'firstByte', unit: 'ms', budget: 300 },
  { id: 'P9', kind: 'list', what: 'GET /users, memory above idle', part: 'memory', unit: 'MB', budget: 150 },
  { id: 'P9', kind: 'list', what: 'GET /users, statements', part: 'statements', unit: 'statements', budget: 3 },
  { id: 'P10', kind: 'figure', what: '100,000 tokens, page 1, p95', part: 'first', unit: 'ms', budget: 30 },
  { id: 'P10', kind: 'figure', what: '100,000 tokens, page 1,000, p95', part: 'thousandth', unit: 'ms', budget: 30 },
  { id: 'P11', kind: 'invite', what: 'inviting 1,000 addresses, 20 ms a mail', unit: 's', budget: 15 },
  { id: 'P12', kind: 'relay', what: 'events to JetStream, a backlog', part: 'rate', unit: 'events/s', budget: 2000 },
  { id: 'P12', kind: 'relay', what: 'events to JetStream, p99 lag at 200/s', part: 'lag', unit: 'ms', budget: 200 },
  { id: 'P13', kind: 'figure', what: 'start to ready, new data', part: 'fresh', unit: 's', budget: 2 },
  { id: 'P13', kind: 'figure', what: 'start to ready, 100,000 users', part: 'existing', unit: 's', budget: 1 },
  { id: 'P13', kind: 'figure', what: 'idle memory', part: 'idle', unit: 'MB', budget: 130 },
  // What a collector of garbage leaves between two looks differs by some megabytes.
  { id: 'P13', kind: 'figure', what: 'memory, growth in half the load', part: 'growth', unit: 'MB', budget: 5 },
  {
    id: 'P14',
    kind: 'statements',
    what: 'lists, statements that rows add',
    peer: '100 users',
    unit: 'statements',
    budget: 0,
  },
  {
    id: 'T9',
    kind: 'timing',
    what: 'password/forgot, known e-mail',
    part: 'forgot',
    peer: 'unknown e-mail',
    tries: 2000,
    unit: '%',
    budget: 5,
  },
  {
    id: 'T9',
    kind: 'timing',
    what: 'otp/generate, known e-mail',
    part: 'generate',
    peer: 'unknown e-mail',
    tries: 2000,
    unit: '%',
    budget: 5,
  },
  {
    id: 'T9',
    kind: 'timing',
    what: 'wrong password, known e-mail',
    part: 'password',
    peer: 'unknown e-mail',
    tries: 2000,
    unit: '%',
    budget: 5,
  },
  // Fewer: each is answered after a fixed time.
  {
    id: 'T9',
    kind: 'timing',
    what: 'wrong code, known e-mail',
    part: 'code',
    peer: 'unknown e-mail',
    tries: 400,
    unit: '%',
    budget: 5,
  },
  {
    id: 'MCP',
    kind: 'calls',
    what: 'get_user over /mcp, cost',
    part: 'get_user',
    peer: 'GET /users/:id',
    budget: 2,
  },
  { id: 'MCP', kind: 'calls', what: 'list_users over /mcp, cost', part: 'list_users', peer: 'GET /users', budget: 2 },
  {
    id: 'REF',
    kind: 'load',
    what: 'the peers, for orientation',
    subject: 'better-auth',
    peer: 'bare-fastify',
    budget: null,
  },
];

/** Whether the budget of a row is the least, not the most, that may be measured. */
export function isLeast({ kind, part }: Row): boolean {
  return kind === 'load' || kind === 'growth' || part === 'rate';
}

/** Whether a measured value keeps the row's budget; null where there is none. */
export function holds(row: Row, value: number): boolean | null {
  if (row.budget === null) return null;
  return isLeast(row) ? value >= row.budget : value <= row.budget;
}
