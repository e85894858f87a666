import { type InputProblem, refuseInput } from '../../base/errors.ts';
import { normalizeEmail } from '../../text/email-address.ts';
import { emailsMax } from './invitation.ts';

const problemsMax = 20;
const shownMax = 100;
const cellEnd = /[,;\t]/;
/** Quotes and spaces around a cell. */
const around = /^[\s"']+|[\s"']+$/g;

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

/**
 * Returns the addresses in a CSV file, normalized, each once: those of all cells with an `@`, in whatever column. Throws
 * `invalidInput`, naming the lines, for a file in which one is not valid, and for one with none or too many. Rule: FIT-78.
 */
export function emailsInFile(file: Uint8Array): string[] {
  const found = new Set<string>();
  const problems: InputProblem[] = [];
  for (const [place, line] of textOf(file)
    .split(/\r\n|\n|\r/)
    .entries()) {
    for (const cell of line.split(cellEnd)) {
      const given = cell.replace(around, '');
      if (!given.includes('@')) continue;
      const email = normalizeEmail(given);
      if (email !== null) found.add(email);
      else if (problems.length < problemsMax) {
        const message = `line ${place + 1}: ${given.slice(0, shownMax)} is not a valid e-mail address`;
        problems.push({ field: 'body.file', message });
      }
    }
  }
  if (problems.length > 0) throw refuseInput(...problems);
  if (found.size === 0) throw refuseInput({ field: 'body.file', message: 'must hold at least one e-mail address' });
  if (found.size > emailsMax) {
    throw refuseInput({ field: 'body.file', message: `must hold at most ${emailsMax} e-mail addresses` });
  }
  return [...found];
}
