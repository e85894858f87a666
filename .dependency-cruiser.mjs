import { kinds } from './scripts/file-kinds.mjs';

// Who may import whom. scripts/cruise.mjs runs these rules; `comment` is what the author of a violation reads.

/** @typedef {import('dependency-cruiser').IForbiddenRuleType} Rule */

const src = '^server/src/';
const cli = '^cli/src/';
const features = `${src}(?:features|operator)/`;
const eachFeature = `${src}((?:features|operator)/[^/]+)/`;
const ownFeature = `${src}$1/`;
const folders = [
  'access',
  'audit-log',
  'base',
  'config',
  'connector',
  'db',
  'http',
  'images',
  'keys',
  'limits',
  'mail',
  'mcp',
  'metrics',
  'oidc',
  'outbound',
  'outbox',
  'text',
];
const platform = [`${src}(?:${folders.join('|')})/`, `${src}process/(?!compose)`, `${src}services\\.ts$`];
const basics = `${src}base/(?:errors|refusals|clock|ids|secret)\\.ts$`;
/** Pure as well: the schemas and texts that nouns are made of. */
const vocabulary = `${src}(?:text/|http/(?:schemas|media)\\.ts$)`;
/** Stores of the platform: of the limits and keys that nodes share. */
const platformStore = `${src}(?:keys|limits)/[^/.]+-store\\.ts$`;
const queries = '^node_modules/(?:kysely|better-sqlite3|pg)/';

/** Node.js modules that reach outside the process: what uses them is not pure. */
const reaching = ['child_process', 'cluster', 'dgram', 'dns', 'fs', 'http', 'http2', 'https', 'net', 'process', 'tls'];
const outside = `^(?:node:)?(?:${reaching.join('|')}|worker_threads)(?:/|$)`;

const notNouns = [kinds.endpoint, kinds.public, kinds.actions, kinds.store, kinds.test];
const noun = { path: features, pathNot: notNouns };
const pure = { path: [features, vocabulary], pathNot: notNouns };
const product = { path: [src, cli], pathNot: kinds.test };
/** An import that leaves something behind when the types are gone. */
const value = { dependencyTypesNot: [/** @type {const} */ ('type-only')] };

/** @type {Rule[]} */
const general = [
  {
    name: 'no-cycles',
    comment: 'Two files that need each other are one thought in two places.',
    from: {},
    to: { circular: true },
  },
  {
    name: 'no-unresolved',
    comment: 'Every import leads to a file or an installed package.',
    from: {},
    to: { couldNotResolve: true },
  },
  {
    name: 'no-undeclared-packages',
    comment:
      'What the product imports is a runtime dependency in the package.json of its workspace; types alone may come from elsewhere.',
    from: product,
    to: { ...value, dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
  },
  {
    name: 'no-tests-in-product',
    comment: 'What ships knows nothing of tests.',
    from: product,
    to: {
      path: [
        '^(?:server|cli)/test/',
        '^(?:harness|bench|faults)/',
        kinds.test,
        '^node_modules/(?:vitest|fast-check|ajv|oidc-provider)/',
      ],
    },
  },
  {
    name: 'routes-belong-to-composition',
    comment:
      'Only the composition root and http/ see the table of all endpoints; features see public.ts of each other.',
    from: { path: src, pathNot: [`${src}(?:main|process/compose(?:-events)?)\\.ts$`, `${src}http/`, kinds.test] },
    to: { path: `${src}routes\\.gen\\.ts$` },
  },
];

/** @type {Rule[]} */
const layers = [
  {
    name: 'platform-knows-no-feature',
    comment: 'Features build on the platform; process/compose.ts hands the platform what it needs of them.',
    from: { path: platform },
    to: { path: features },
  },
  {
    name: 'features-meet-at-public',
    comment: "Another feature's public.ts is all that a feature may import of it.",
    from: { path: eachFeature },
    to: { path: features, pathNot: [ownFeature, kinds.public] },
  },
  {
    name: 'operator-belongs-to-the-command',
    comment: 'What operator/ holds is for the command alone; the server runs without it.',
    from: { path: '^server/src/', pathNot: [`${src}operator/`, kinds.test] },
    to: { path: `${src}operator/` },
  },
  {
    name: 'fastify-stays-in-http',
    comment: 'The rest of the product is the same behind any web framework.',
    from: { path: src, pathNot: [`${src}http/`, kinds.test] },
    to: { path: '^node_modules/(?:fastify|@fastify)/' },
  },
  {
    name: 'only-stores-query',
    comment: 'SQL lives in *-store.ts, db/, outbox/ and audit-log/: there one looks for it.',
    from: { path: [src, cli], pathNot: [kinds.store, kinds.test, `${src}(?:db|outbox|audit-log)/`, platformStore] },
    to: { path: queries },
  },
];

/** @type {Rule[]} */
const command = [
  {
    name: 'server-knows-no-command',
    comment: 'The command is built on the server; the server is the same without it.',
    from: { path: '^server/' },
    to: { path: '^cli/' },
  },
  {
    name: 'command-uses-public',
    comment: "The command does what public.ts and the platform offer; endpoints and stores are the server's own.",
    from: { path: cli, pathNot: kinds.test },
    to: { path: [features, `${src}http/`, `${src}(?:main|routes\\.gen)\\.ts$`], pathNot: kinds.public },
  },
];

/** @type {Rule[]} */
const harness = [
  {
    name: 'harness-knows-no-user',
    comment: 'Tests, benchmarks and fault injection start servers by the harness, which knows none of them.',
    from: { path: '^harness/' },
    to: { path: '^(?:server|cli|bench|faults|scripts)/' },
  },
  {
    name: 'apart-from-tests',
    comment: 'Benchmarks and fault injection see the service from outside, and share with tests what is in harness/.',
    from: { path: '^(?:bench|faults)/' },
    to: { path: '^(?:server|cli)/(?:src|test)/' },
  },
];

/** @type {Rule[]} */
const kindsOfFile = [
  {
    name: 'endpoints-stand-alone',
    comment: 'What two endpoints share belongs to the noun, the store or the actions.',
    from: { path: [kinds.endpoint, kinds.public, kinds.actions, kinds.store] },
    to: { path: kinds.endpoint },
  },
  {
    name: 'stores-hold-sql',
    comment: 'A store imports db/, outbox/, audit-log/ and the nouns of its folder, and calls nobody else.',
    from: { path: `${eachFeature}[^/.]+-store\\.ts$` },
    to: { ...value, path: src, pathNot: [`${src}(?:db|outbox|audit-log)/`, basics, ownFeature] },
  },
  {
    name: 'nouns-are-pure',
    comment:
      'A noun holds types and rules that need no service: the basics, the vocabulary and the nouns of its folder.',
    from: { path: eachFeature, pathNot: notNouns },
    to: { ...value, path: src, pathNot: [basics, vocabulary, ownFeature] },
  },
  {
    name: 'vocabulary-is-pure',
    comment: 'Nouns are made of these files, so they need no service either.',
    from: { path: vocabulary, pathNot: kinds.test },
    to: { ...value, path: src, pathNot: [basics, vocabulary] },
  },
  {
    name: 'nouns-import-nouns',
    comment: 'A noun imports no endpoint, no store, no actions and no public.ts.',
    from: noun,
    to: { ...value, path: [kinds.endpoint, kinds.public, kinds.actions, kinds.store] },
  },
  {
    name: 'nouns-reach-nowhere',
    comment: 'A pure rule reads no file and opens no connection.',
    from: pure,
    to: { path: outside, dependencyTypes: ['core'] },
  },
  {
    name: 'nouns-use-zod-alone',
    comment: 'The schema library is pure; any other package belongs to the platform.',
    from: pure,
    to: { ...value, path: '^node_modules/', pathNot: '^node_modules/zod/' },
  },
];

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [...general, ...layers, ...command, ...harness, ...kindsOfFile].map((rule) => ({
    ...rule,
    severity: /** @type {const} */ ('error'),
  })),
  options: {
    doNotFollow: { path: 'node_modules' },
    // A type import is a dependency of the reader, if not of the program.
    tsPreCompilationDeps: true,
    combinedDependencies: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
      extensions: ['.ts', '.mjs', '.js', '.json'],
    },
  },
};
