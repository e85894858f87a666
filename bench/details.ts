import { median } from '../harness/statistics.ts';

const milliseconds = (number) => `${number < 10 ? number.toFixed(1) : Math.round(number)} ms`;
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
const kilobytes = (bytes) => `${(bytes / 1e3).toFixed(1)} kB`;
const size = (bytes) => (bytes < 1e6 ? kilobytes(bytes) : megabytes(bytes));

const shortened = (sql) => (sql.length > 40 ? `${sql.slice(0, 40)}…` : sql);

function turnLines({ id, ratios, work: { answers, medianMs }, turns }) {
  const counts = Object.keys(answers).map((status) => `${answers[status]} answered ${status}`);
  const waiting = (turn) =>
    `${Math.round(median(turns.map((each) => each[turn].serverWaitShare ?? Number.NaN)) * 100)} %`;
  return [
    `${id}: ratios ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}; work ${counts.join(', ')}, in ${milliseconds(medianMs)} (median)`,
    `${id}: the event loop was ready and waited for a core ${waiting('loaded')} of the time, ${waiting('idle')} without the work`,
  ];
}

function timingLines({ id, what, knownMs, unknownMs, after, tries }) {
  const both = ({ knownMs: known, unknownMs: unknown }) =>
    `${known.toFixed(3)} ms known, ${unknown.toFixed(3)} ms unknown`;
  return [
    `${id}: ${what}, medians of ${tries} each: ${both({ knownMs, unknownMs })}; something else right after: ${both(after)}`,
  ];
}

function otherLine(id, { path, firstByteMs, totalMs, bytes, matches }) {
  const found = matches === null ? '' : `, ${matches} found`;
  return `${id}:   GET ${path}  ${milliseconds(totalMs)} (first byte ${milliseconds(firstByteMs)}), ${size(bytes)}${found}`;
}

const listLines = {
  firstByte: ({ id, values, totalMs, bytes, others }) => [
    `${id}: first byte after ${values.map(milliseconds).join(', ')} (median ${milliseconds(median(values))}); whole answer ${milliseconds(median(totalMs))} (median), ${megabytes(bytes)}`,
    `${id}: without a budget, medians:`,
    ...others.map((other) => otherLine(id, other)),
  ],
  memory: ({ id, values, idleMb }) => [
    `${id}: memory above the ${Math.round(idleMb)} MB of the idle server, one answer after another: ${values.map(Math.round).join(', ')} MB`,
  ],
  statements: ({ id, sql, firstSql }) => [
    `${id}: statements, verification included: ${sql.map(shortened).join(' | ')}`,
    `${id}: the first whole list after a start also opens a connection, ${firstSql.length} statements: ${firstSql.map(shortened).join(' | ')}`,
  ],
};

function inviteLines({ id, values, longestMs, waitShares, mails }) {
  const waits = waitShares.map((share) => `${Math.round(share * 100)} %`).join(', ');
  return [
    `${id}: took ${values.map((seconds) => `${seconds.toFixed(2)} s`).join(', ')}; at most ${mails.openMost} connections to the mail server at once`,
    `${id}: the longest that anybody else waited meanwhile: ${longestMs.map(milliseconds).join(', ')}`,
    `${id}: the service or the mail server was ready and waited for a core ${waits} of the time`,
  ];
}

function relayLines({ id, part, events, medianMs, longestMs, changesPerSecond, waitShare }) {
  if (part === 'rate') return [`${id}: a backlog of ${events} events`];
  const lag = `${id}: lag ${milliseconds(medianMs)} (median), ${milliseconds(longestMs)} at most`;
  const waited = `the service was ready and waited for a core ${Math.round(waitShare * 100)} % of the time`;
  return [`${lag}, at ${changesPerSecond.toFixed(0)} changes a second; ${waited}`];
}

function statementLines({ id, routes }) {
  return routes.map(({ route, few, many }) => {
    const told = ({ statements, rows }) => `${statements.length} for ${rows} rows`;
    return `${id}:   ${route}  statements: ${told(few)}, ${told(many)}`;
  });
}

/** Numbers in full, by the row and its part. */
const figureLines = {
  late: ({ races, early }) => [`${races} races; ${early} checks that were under way came before the revocation`],
  first: ({ medianMs, longestMs }) => [`page 1: median ${milliseconds(medianMs)}, ${milliseconds(longestMs)} at most`],
  thousandth: ({ medianMs, longestMs }) => [
    `page 1,000: median ${milliseconds(medianMs)}, ${milliseconds(longestMs)} at most`,
  ],
  fresh: ({ times }) => [`starts with new data: ${times.map(milliseconds).join(', ')}`],
  existing: ({ times }) => [`starts with 100,000 users: ${times.map(milliseconds).join(', ')}`],
  idle: () => [],
  growth: ({ minutes, quarters }) => [
    `memory by quarters of ${minutes} minutes of load: ${quarters.map(Math.round).join(', ')} MB`,
  ],
};

const linesOf = {
  growth: () => [],
  figure: ({ id, part, measured }) => figureLines[part](measured).map((line) => `${id}: ${line}`),
  load: () => [],
  calls: () => [],
  cpu: () => [],
  turns: turnLines,
  timing: timingLines,
  list: (outcome) => listLines[outcome.part](outcome),
  invite: inviteLines,
  relay: relayLines,
  statements: statementLines,
};

/** What there is to say of a measured row beyond its line in the table. */
export function details(outcome) {
  return linesOf[outcome.kind](outcome);
}
