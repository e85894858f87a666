import { median } from '../harness/statistics.ts';
import { listed, milliseconds, significant, size } from './formats.ts';
import { inUnit, outcomeOf } from './outcomes.ts';
import type { Races } from './p6-races.ts';
import type { WholeList } from './p9-user-list.ts';
import type { Pages } from './p10-token-list.ts';
import type { ProcessFigures } from './p13-process.ts';
import type { Statements } from './p14-statements.ts';
import type { Outcome, Row } from './rows.ts';

interface Figure {
  readonly value: number;
  readonly lines: readonly string[];
  readonly measured: unknown;
}

function figureOutcome(row: Row, figure: Figure): Outcome {
  const { value } = figure;
  return outcomeOf(row, { ...figure, ours: inUnit(row, value, Number.isInteger(value) ? String : significant) });
}

/** The outcome of P6. */
export function racesOutcome(row: Row, measured: Races): Outcome {
  const { races, late, early } = measured;
  const lines = [`${races} races; ${early} checks that were under way came before the revocation`];
  return figureOutcome(row, { value: late, lines, measured });
}

/** The outcome of one part of P9: the budget is about the most that was seen. */
export function wholeListOutcome(row: Row, measured: WholeList): Outcome {
  const { firstByteMs, totalMs, memoryMb, idleMb, bytes, others } = measured;
  if (row.part === 'memory') {
    const lines = [
      `memory above the ${Math.round(idleMb)} MB of the idle server, one answer after another: ${listed(memoryMb)} MB`,
    ];
    return figureOutcome(row, { value: Math.max(...memoryMb), lines, measured: { memoryMb, idleMb } });
  }
  const [first, all] = [milliseconds(median(firstByteMs)), milliseconds(median(totalMs))];
  const lines = [
    `first byte after ${listed(firstByteMs, milliseconds)} (median ${first}); whole answer ${all} (median), ${size(bytes)}`,
    'without a budget, medians:',
    ...others.map((other) => {
      const found = other.matches === null ? '' : `, ${other.matches} found`;
      const times = `${milliseconds(other.totalMs)} (first byte ${milliseconds(other.firstByteMs)})`;
      return `  GET ${other.path}  ${times}, ${size(other.bytes)}${found}`;
    }),
  ];
  return figureOutcome(row, { value: Math.max(...firstByteMs), lines, measured });
}

const shortened = (sql: string) => (sql.length > 40 ? `${sql.slice(0, 40)}…` : sql);

/** The outcome of the statements of P9. */
export function listStatementsOutcome(row: Row, { wholeList, firstWholeList }: Statements): Outcome {
  const first = firstWholeList.map(shortened).join(' | ');
  const lines = [
    `statements, verification included: ${wholeList.map(shortened).join(' | ')}`,
    `the first whole list after a start also opens a connection, ${firstWholeList.length} statements: ${first}`,
  ];
  return figureOutcome(row, { value: wholeList.length, lines, measured: { wholeList, firstWholeList } });
}

/** The outcome of one part of P10. */
export function tokenListOutcome(row: Row, pages: Pages): Outcome {
  const [page, measured] = row.part === 'first' ? ['1', pages.first] : ['1,000', pages.thousandth];
  const lines = [
    `page ${page}: median ${milliseconds(measured.medianMs)}, ${milliseconds(measured.longestMs)} at most`,
  ];
  return figureOutcome(row, { value: measured.p95Ms, lines, measured });
}

/** The outcome of one part of P13; of several starts, the slowest counts. */
export function processOutcome(row: Row, { fresh, existing, growth }: ProcessFigures): Outcome {
  if (row.part === 'growth' && growth) {
    const lines = [`memory by quarters of ${growth.minutes} minutes of load: ${listed(growth.quarters)} MB`];
    return figureOutcome(row, { value: growth.growthMb, lines, measured: growth });
  }
  if (row.part === 'idle' && existing) {
    return figureOutcome(row, { value: existing.idleMb, lines: [], measured: { idleMb: existing.idleMb } });
  }
  const starts = row.part === 'fresh' ? fresh : existing;
  if (!starts) throw new Error(`nothing was measured of ${row.part}`);
  const store = row.part === 'fresh' ? 'new data' : '100,000 users';
  const lines = [`starts with ${store}: ${listed(starts.times, milliseconds)}`];
  return figureOutcome(row, { value: Math.max(...starts.times) / 1_000, lines, measured: starts });
}
