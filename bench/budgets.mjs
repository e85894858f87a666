/**
 * The rows that the benchmark measures. A `load` row compares the throughput of two servers under the same load and
 * its budget is the least ratio; a `cpu` row is processor time of one call in microseconds and its budget is the most. A row without a
 * budget is there for orientation.
 */
export const rows = [
  {
    id: 'P1',
    kind: 'load',
    what: 'GET /users/:id with a token',
    subject: 'latchkey',
    peer: 'bare-fastify',
    budget: 0.65,
  },
  { id: 'P2', kind: 'load', what: 'GET /users/:id with a token', subject: 'latchkey', peer: 'better-auth', budget: 14 },
  { id: 'P5', kind: 'cpu', what: 'CPU of one verification', subject: 'latchkey', peer: 'no verification', budget: 15 },
  {
    id: 'REF',
    kind: 'load',
    what: 'the peers, for orientation',
    subject: 'better-auth',
    peer: 'bare-fastify',
    budget: null,
  },
];

/** Whether a measured value keeps the row's budget; null where there is none. */
export function holds(row, value) {
  if (row.budget === null) return null;
  return row.kind === 'cpu' ? value <= row.budget : value >= row.budget;
}
