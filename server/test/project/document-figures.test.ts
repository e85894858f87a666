import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allowanceOf } from '../../src/limits/limits.ts';
import { constantIn, root, rowsOf, sectionOf, statementsOf } from '../support/documents.ts';

const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000] as const;
const kibibyte = 1_024;
const mebibyte = kibibyte ** 2;
const gigabyte = 1_000_000_000;

const fileText = (path: string) => readFileSync(join(root, path), 'utf8');
const jsonOf = (path: string) => JSON.parse(fileText(path));
const number = (value: number) => value.toLocaleString('en-US');
const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve'];
const lint = jsonOf('.oxlintrc.json');
const biome = jsonOf('biome.json').linter.rules.complexity;
const nodeMin = jsonOf('package.json').engines.node.replace('>=', '');

const api = 'docs/api-design.md';
const operate = 'docs/guides/operate.md';
const mailGuide = 'docs/guides/mail.md';
const command = 'docs/guides/command.md';
const events = 'docs/guides/events.md';
const scale = 'docs/guides/scale.md';
const contributing = 'CONTRIBUTING.md';

const lists = constantIn('postgres-lists.ts', 'listsMax');
const queries = constantIn('postgres.ts', 'connectionsMax');
const node = queries + lists + 1;
/** PostgreSQL reserves three of its 100 connections for superusers. */
const nodesAtDefault = Math.floor(97 / node);
const seconds = (file: string, name: string) => constantIn(file, name) / second;

describe('figures of the documents', () => {
  it.each([
    ['README.md', `Node.js ${nodeMin} or newer`],
    [contributing, `Node.js ${nodeMin} or newer`],
    [
      contributing,
      `at most ${lint.rules['max-lines'][1].max} lines (a test ${lint.overrides[0].rules['max-lines'][1].max})`,
    ],
    [
      contributing,
      `a function ${biome.noExcessiveLinesPerFunction.options.maxLines}, an endpoint file ${constantIn('cruise.mjs', 'endpointLinesMax')}`,
    ],
    [
      contributing,
      `at most ${biome.useMaxParams.options.max} parameters, ${lint.rules['max-depth'][1]} levels of nesting`,
    ],
    [contributing, `cognitive complexity of ${biome.noExcessiveCognitiveComplexity.options.maxAllowedComplexity}`],
    [contributing, `at most ${constantIn('cruise.mjs', 'runtimeDependenciesMax')} runtime dependencies`],
    [
      'docs/decisions/0002-dependencies.md',
      `at most ${constantIn('cruise.mjs', 'runtimeDependenciesMax')} runtime dependencies`,
    ],
    [contributing, `if it has ${constantIn('test-directory.mjs', 'memoryBytesMin') / kibibyte ** 3} GB free`],
    [contributing, `in ${words[Number(/maxWorkers: (\d+)/.exec(fileText('vitest.config.ts'))?.[1])]} processes`],
    [scale, `up to ${node} connections: ${queries} for queries and writes, ${lists} for long lists, and one`],
    [scale, `at least ${node} per node`],
    [scale, `is enough for ${words[nodesAtDefault]} nodes`],
    [scale, `waiting for a free one | ${seconds('postgres-pool.ts', 'connectMsMax')} s |`],
    [scale, `or for a lock | ${seconds('postgres-pool.ts', 'lockMsMax')} s |`],
    [scale, `a statement | ${seconds('postgres-pool.ts', 'statementMsMax')} s |`],
    [scale, `a long list | ${seconds('postgres.ts', 'listMsMax')} s |`],
    [scale, `reading the data version | ${seconds('postgres-data-version.ts', 'versionMsMax')} s |`],
    [scale, `an idle transaction | ${seconds('postgres-pool.ts', 'idleMsMax')} s |`],
    [scale, `the age of a connection | ${constantIn('postgres-pool.ts', 'lifeSecondsMax') / 60} min |`],
    [scale, `allows ${allowanceOf('badCredential')} failed credentials a minute`],
    [operate, `for up to ${seconds('relays.ts', 'flushMsMax')} seconds`],
    [operate, `After ${seconds('drain.ts', 'graceMs')} seconds the server cuts off`],
    [operate, `stores up to ${constantIn('sqlite.ts', 'checkedBytesMax') / mebibyte} MiB for damage`],
    [mailGuide, `in memory only, at most ${number(constantIn('later-mails.ts', 'waitingMax'))}`],
    [
      operate,
      `at most ${constantIn('open-connector.ts', 'connectionsMax')} connections and queues ${constantIn('open-connector.ts', 'waitingMax')} requests`,
    ],
    [operate, `After ${words[constantIn('circuit-breaker.ts', 'failuresMax')]} consecutive failures`],
    [operate, `for ${seconds('circuit-breaker.ts', 'openMs')} seconds, then tries one request`],
    [operate, `Up to ${number(constantIn('process/serve.ts', 'backlog'))} connections can wait`],
    [
      operate,
      `(${constantIn('list-audit.ts', 'limitDefault')}, at most ${constantIn('list-audit.ts', 'limitMax')}) and \`cursor\``,
    ],
    [
      operate,
      `Beyond ${allowanceOf('refusedSignIn')} a minute from one network, or ${allowanceOf('refusedSignInOfAll')} in total`,
    ],
    [operate, `beyond ${constantIn('rejection-counter.ts', 'networksMax')} networks`],
    [operate, `| changes | ${allowanceOf('write')} a minute | ${number(allowanceOf('administratorWrite'))} |`],
    [
      operate,
      `${allowanceOf('read')} a minute, ${allowanceOf('readTime') / second} s of their time, ${constantIn('read-queue.ts', 'ofOneMax')} at once | ${number(allowanceOf('administratorRead'))}, ${allowanceOf('administratorReadTime') / second} s, ${constantIn('read-queue.ts', 'ofOneMax')} |`,
    ],
    [operate, `the first ${number(constantIn('paging.ts', 'foundMax'))} items`],
    [
      operate,
      `${constantIn('earlier-revisions.ts', 'batchMax')} calls, ${seconds('earlier-revisions.ts', 'batchMsMax')} s, ${constantIn('earlier-revisions.ts', 'batchTextMax') / 1_000_000} MB`,
    ],
    [
      operate,
      `| long lists at once; one that is not read for ${seconds('list-places.ts', 'stalledMs')} s makes room where all places are taken | ${constantIn('list-places.ts', 'ofOneMax')} | the same | 429 |`,
    ],
    [operate, `${allowanceOf('refresh')}, ${allowanceOf('signIn')} and ${allowanceOf('passwordChange')} an hour`],
    [operate, `have at most ${constantIn('changes.ts', 'recordBytesMax') / kibibyte} KB each`],
    [operate, `${constantIn('link.ts', 'endedLinkKeptMs') / day} days after they ended`],
    [
      events,
      `at most ${constantIn('streams.ts', 'openMaxEach')} streams, and one more gets 429; a process has ${constantIn('streams.ts', 'openMax')},`,
    ],
    [events, `every ${seconds('events/public.ts', 'beatMs')} seconds; reconnect`],
    [events, `by default and at most ${number(constantIn('list-events.ts', 'limitMax'))}`],
    [events, `can have ${constantIn('webhook.ts', 'webhooksMax')} webhooks`],
    [events, `within ${seconds('webhook-sender.ts', 'exchangeMsMax')} seconds for the whole exchange`],
    [events, `tries it ${constantIn('relay.ts', 'refusedTriesMax')} times`],
    [events, `For ${constantIn('webhook.ts', 'earlierSecretMs') / hour} hours, messages are signed with both`],
    [
      command,
      `less than ${constantIn('machine-checks.ts', 'freeBytesMin') / 1_000_000} MB free | less than ${constantIn('machine-checks.ts', 'freeBytesAdvised') / gigabyte} GB free`,
    ],
    [command, `up to ${constantIn('store-checks.ts', 'wholeBytesMax') / 1_000_000} MB unless`],
    [
      command,
      `${seconds('machine-checks.ts', 'apartMsMax')} s off the server | ${seconds('machine-checks.ts', 'apartMsAdvised')} s off the server`,
    ],
    [command, `at least ${constantIn('stored-keys.ts', 'keptMsMin') / day} days`],
    ['docs/guides/import.md', `up to ${constantIn('report.ts', 'problemsListed')} problems`],
    [command, `more than ${number(constantIn('store-checks.ts', 'behindAdvised'))} events behind`],
    [operate, `for ${words[seconds('postgres-transactions.ts', 'doubtMs')]} seconds after a refused change`],
    [operate, `${constantIn('sessions/session.ts', 'endedKeptMs') / day} days after they ended`],
    [operate, `waited more than ${seconds('load-shedder.ts', 'usualWaitMsMax')} seconds`],
    [events, `duplicate window of ${constantIn('nats-connection.ts', 'duplicateMs') / minute} minutes`],
    ['docs/guides/import.md', `object of up to ${constantIn('dump-file.ts', 'wholeBytesMax') / mebibyte} MB`],
    [api, `at most ${number(constantIn('bearer.ts', 'credentialBytesMax'))} characters`],
    [api, `for ${seconds('session.ts', 'rotationGraceMs')} more seconds`],
    [api, `at most ${constantIn('input.ts', 'detailsMax')} problems`],
  ])('%s: %s', (path, statement) => {
    expect(statementsOf(path)).toContain(statement);
  });
});

const minutes = (file: string, name: string) => constantIn(file, name) / minute;
const mebibytes = (file: string, name: string) => constantIn(file, name) / mebibyte;
const waiting = constantIn('picture-compressor.ts', 'waitingMax');
const connector = constantIn('open-connector.ts', 'connectionsMax') + constantIn('open-connector.ts', 'waitingMax');
const free = constantIn('sign-in-limits.ts', 'freeFailures');

/** Parts of the rows of the limits, by the beginning of the row. */
const limits: readonly (readonly [string, string])[] = [
  [
    'JSON body',
    `${number(constantIn('request-rules.ts', 'bodyBytesMax'))} bytes, ${constantIn('request-rules.ts', 'levelsMax')} levels`,
  ],
  ['Bodies over 16 KiB', `${mebibytes('body-budget.ts', 'ofOneBytesMax')} MiB per user`],
  ['Responses over 64 KiB', `${mebibytes('response-budget.ts', 'ofOneBytesMax')} MiB per user`],
  ['Responses over 64 KiB', `${mebibytes('response-budget.ts', 'ofStrangerBytesMax')} MiB per network`],
  [
    'Changes',
    `${allowanceOf('write')} a minute per member, ${number(allowanceOf('administratorWrite'))} per administrator`,
  ],
  [
    'Expensive reads',
    `${allowanceOf('read')} a minute per member, ${number(allowanceOf('administratorRead'))} per administrator`,
  ],
  ['Expensive reads', `${number(constantIn('budgets.ts', 'rowsOfRead'))} rows`],
  [
    'Time that expensive reads',
    `${allowanceOf('readTime') / second} seconds a minute per member, ${allowanceOf('administratorReadTime') / second} per administrator`,
  ],
  ['Expensive reads in progress', `${constantIn('read-queue.ts', 'ofOneMax')} per user, then 429`],
  ['Pages of a search', `within the first ${number(constantIn('paging.ts', 'foundMax'))} items`],
  [
    'Calls in one MCP batch',
    `${constantIn('earlier-revisions.ts', 'batchMax')}, ${seconds('earlier-revisions.ts', 'batchMsMax')} seconds in total; ${constantIn('earlier-revisions.ts', 'batchTextMax') / 1_000_000} MB`,
  ],
  [
    'Headers',
    `${constantIn('request-rules.ts', 'headersMax')}; complete within ${seconds('create-fastify.ts', 'headersTimeoutMs')} seconds`,
  ],
  ['Headers', `the whole request within ${seconds('create-fastify.ts', 'requestTimeoutMs')} seconds`],
  ['Idle connection', `closed after ${seconds('create-fastify.ts', 'idleTimeoutMs')} seconds`],
  [
    'Memberships in one change',
    `${number(constantIn('membership-change.ts', 'pairsMax'))}: users times groups, of which at most ${constantIn('membership-change.ts', 'groupsMax')}`,
  ],
  ['Teams created', `${allowanceOf('team')} a minute`],
  ['Members of a team', number(constantIn('team-input.ts', 'membersMax'))],
  [
    'Requests to a connector backend',
    `${connector} in total, then 503; ${constantIn('open-connector.ts', 'ofOneMax')} per user`,
  ],
  [
    'Uploaded file',
    `${number(constantIn('upload.ts', 'fileBytesMax'))} bytes, ${constantIn('picture-header.ts', 'pixelsMax') / 1_000_000} megapixels`,
  ],
  [
    'Stored picture',
    `under ${number(constantIn('encode-picture.ts', 'imageBytesLimit'))} bytes, ${number(constantIn('decode-picture.ts', 'sideMax'))} pixels`,
  ],
  ['Name of a token', `1 to ${constantIn('create-token.ts', 'nameMax')} characters`],
  ['Scopes in one creation', `${constantIn('create-token.ts', 'scopesMax')}`],
  ['Names and other text', `${constantIn('plain-text.ts', 'textMax')} characters`],
  [
    'E-mail address',
    `${constantIn('email-address.ts', 'octetsMax')} octets, ${constantIn('email-address.ts', 'localOctetsMax')} before`,
  ],
  [
    'New password',
    `${constantIn('password-rules.ts', 'charactersMin')} characters to ${number(constantIn('password-rules.ts', 'bytesMax'))} bytes`,
  ],
  ['Failed credentials', `${allowanceOf('badCredential')} a minute per network`],
  ['Tokens created', `${allowanceOf('mint')} a minute per user`],
  ['Pictures uploaded', `${allowanceOf('upload')} a minute per user`],
  ['Sign-ins started', `${allowanceOf('signInStart')} a minute per network`],
  ['Successful sign-ins', `${allowanceOf('signIn')} an hour per user and network`],
  ['Refreshes', `${allowanceOf('refresh')} an hour per user`],
  ['Changes of the own password', `${allowanceOf('passwordChange')} an hour per user and network`],
  [
    'Addresses in one invitation',
    `${number(constantIn('invitation.ts', 'emailsMax'))}, ${constantIn('invitation.ts', 'groupsMax')}`,
  ],
  ['Requests to invite', `${allowanceOf('invite')} a minute per user`],
  [
    'Requests to recover a password',
    `${allowanceOf('recovery')} a minute per network; ${allowanceOf('recoveryMail')} mails in 20 minutes`,
  ],
  ['Mails with a one-time code', `${allowanceOf('codeMail')} in 10 minutes`],
  ['Scoped tokens', `${allowanceOf('serviceToken')} a minute per service client`],
  ['Notices', `${allowanceOf('notice')} of one kind in 10 minutes`],
  ['Notices of a changed e-mail', `${allowanceOf('emailNotice')} a minute`],
  ['Notices that an administrator left', `${allowanceOf('leaverNotice')} a minute`],
  ['Mails to confirm', `${allowanceOf('confirmationMail')} an hour`],
  [
    'Refused sign-ins',
    `${allowanceOf('refusedSignIn')} a minute per network and ${allowanceOf('refusedSignInOfAll')} in total`,
  ],
  ['Mails, providers and webhooks', `${allowanceOf('testMail')} a minute`],
  ['Webhooks', `${constantIn('webhook.ts', 'webhooksMax')}`],
  [
    'An exchange with a webhook',
    `${seconds('webhook-sender.ts', 'exchangeMsMax')} seconds; ${constantIn('exchanger.ts', 'spareBytesMax') / kibibyte} KiB`,
  ],
  [
    'Event streams',
    `${constantIn('streams.ts', 'openMaxEach')} per caller, then 429; ${constantIn('streams.ts', 'openMax')} per node`,
  ],
  [
    'Failed sign-ins of one account from one network',
    `after ${free}, a wait before the next: 1 second, doubled each time, at most ${minutes('slow-down.ts', 'blockMsMax')} minutes`,
  ],
  ['Failed sign-ins from one network', `after ${free * 10}`],
  ['Failed sign-ins of one account from networks', `after ${constantIn('sign-in-limits.ts', 'freeFailuresOfAccount')}`],
  [
    'Wrong one-time codes',
    `${constantIn('code.ts', 'wrongCodesMax')} in ${constantIn('code.ts', 'wrongCodesMs') / hour} hours`,
  ],
  ['Passwords waiting', `${constantIn('passwords.ts', 'waitingMax')}, then 503`],
  ['Pictures in progress', `and ${waiting}, then 503; ${constantIn('picture-compressor.ts', 'ofOneMax')} per user`],
  [
    'Long lists in progress',
    `${constantIn('stream-reader.ts', 'atOnceMax')} (${lists} per node on PostgreSQL), then 503; ${constantIn('list-places.ts', 'ofOneMax')} per user`,
  ],
];

describe('the limits of docs/api-design.md', () => {
  const rows = rowsOf(sectionOf(api, '## Limits'));

  it.each(limits)('%s: %s', (name, limit) => {
    const found = rows.filter(([what]) => what?.startsWith(name));
    expect(found.map(([, cell]) => cell)).toContainEqual(expect.stringContaining(limit));
  });

  it('are each compared with the source, but for a few', () => {
    const compared = rows.filter(([what]) => limits.some(([name]) => what?.startsWith(name)));
    expect(rows.length - compared.length).toBeLessThanOrEqual(3);
  });
});
