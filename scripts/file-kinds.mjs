// The kinds of file in a feature folder, recognized by name alone. The generator and the import rules share this list.

/** The words that may begin the name of an endpoint file, which is always `<verb>-<noun>.ts`. */
const verbs = [
  'accept',
  'add',
  'authenticate',
  'change',
  'check',
  'complete',
  'confirm',
  'create',
  'decline',
  'delete',
  'disable',
  'download',
  'enable',
  'exists',
  'explain',
  'export',
  'find',
  'get',
  'import',
  'introspect',
  'invite',
  'issue',
  'leave',
  'list',
  'mint',
  'move',
  'put',
  'read',
  'redeem',
  'refresh',
  'reload',
  'remove',
  'rename',
  'replace',
  'replay',
  'requeue',
  'request',
  'resend',
  'reset',
  'restore',
  'revoke',
  'rotate',
  'search',
  'send',
  'serve',
  'set',
  'start',
  'stop',
  'suspend',
  'switch',
  'test',
  'transfer',
  'unblock',
  'update',
  'upload',
  'validate',
  'verify',
];

/** Verbs of two words, which may also stand alone: log-out.ts. */
const doubleVerbs = ['log-in', 'log-out', 'sign-in', 'sign-out'];

const feature = '^server/src/(?:features|operator)/[^/]+/';

/** Patterns (sources of regular expressions) over paths from the root. */
export const kinds = {
  endpoint: `${feature}(?:(?:${[...verbs, ...doubleVerbs].join('|')})-[^/.]+|${doubleVerbs.join('|')})(?<!-(?:store|actions))\\.ts$`,
  public: `${feature}public\\.ts$`,
  actions: `${feature}[^/.]+-actions\\.ts$`,
  store: `${feature}[^/.]+-store\\.ts$`,
  test: '\\.test\\.ts$',
};

/** What a file of a feature folder is: `endpoint`, `public`, `actions`, `store`, `test` or, when it is none of these, `noun`. */
export function kindOf(/** @type {string} */ path) {
  const order = /** @type {const} */ (['test', 'public', 'actions', 'store', 'endpoint']);
  return order.find((kind) => new RegExp(kinds[kind]).test(path)) ?? 'noun';
}
