import { type InputProblem, refuseInput } from '../../base/errors.ts';
import { normalizeEmail } from '../../text/email-address.ts';
import { emailsMax } from './invitation.ts';

const problemsMax = 20;
const shownMax = 100;
const cellEnd = /[,;\t]/;
/** Longer than any address with the quotes and spaces around it. */
const cellCharsMax = 1_000;
const around = /[\s"']/;

function textOf(file: Uint8Array): string {
  try {
    // A byte order mark at the start is dropped.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(file);
    if (!text.includes('\0')) return text;
  } catch {
    // Answered below.
  }
  throw refuseInput({ field: 'body.file', message: 'must be a CSV file in UTF-8' });
}

/** Returns a cell without the quotes and spaces around it, in linear time. */
function trimmed(cell: string): string {
  let [start, end] = [0, cell.length];
  while (start < end && around.test(cell.charAt(start))) start += 1;
  while (end > start && around.test(cell.charAt(end - 1))) end -= 1;
  return cell.slice(start, end);
}

/** The cells of a file that hold an `@`, each with the place of its line. */
function* cellsWithAddress(text: string): Generator<readonly [number, string]> {
  for (const [place, line] of text.split(/\r\n|\n|\r/).entries()) {
    for (const cell of line.split(cellEnd)) if (cell.includes('@')) yield [place, cell];
  }
}

/**
 * Returns the addresses in a CSV file, normalized, each once: those of all cells with an `@`, in whatever column. Throws
 * `invalidInput`, naming the lines, for a file in which one is not valid, and for one with none or too many. Rule: FIT-78.
 */
export function emailsInFile(file: Uint8Array): string[] {
  const found = new Set<string>();
  const problems: InputProblem[] = [];
  for (const [place, cell] of cellsWithAddress(textOf(file))) {
    const given = trimmed(cell.slice(0, cellCharsMax + 1));
    const email = cell.length > cellCharsMax ? null : normalizeEmail(given);
    if (email !== null) found.add(email);
    else {
      const message = `line ${place + 1}: ${given.slice(0, shownMax)} is not a valid e-mail address`;
      problems.push({ field: 'body.file', message });
    }
    // Nothing after these changes the answer.
    if (found.size > emailsMax || problems.length === problemsMax) break;
  }
  if (problems.length > 0) throw refuseInput(...problems);
  if (found.size === 0) throw refuseInput({ field: 'body.file', message: 'must hold at least one e-mail address' });
  if (found.size > emailsMax) {
    throw refuseInput({ field: 'body.file', message: `must hold at most ${emailsMax} e-mail addresses` });
  }
  return [...found];
}
