import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CsvError, parse } from 'csv-parse';
import { z } from 'zod';
import { emailAddress } from '../../../server/src/text/email-address.ts';
import { address, clearableMobile, clearableText, foldCase, plainText } from '../../../server/src/text/plain-text.ts';
import { CommandError } from '../failures.ts';
import { fileText, type Progress } from './file-text.ts';
import { problemsOf } from './problems-of.ts';
import type { Staging } from './staging.ts';

const fullName = plainText();

/** A line of the file; empty cells are ignored. */
const line = z.object({
  email: emailAddress,
  fullName: fullName.optional(),
  firstName: clearableText.optional(),
  middleName: clearableText.optional(),
  lastName: clearableText.optional(),
  mobile: clearableMobile.optional(),
  designation: clearableText.optional(),
  ...address.shape,
  groups: z
    .string()
    .transform((names) => names.split(';').filter((name) => name.trim() !== ''))
    .pipe(z.array(plainText()))
    .optional(),
  role: z.enum(['admin', 'member'], 'must be admin or member').optional(),
});

const columns = Object.keys(line.shape);
const recordBytesMax = 1_048_576;

/** Columns are found in any case, and with spaces, hyphens and underscores in them: "Full Name" is fullName. */
const columnsByKey = new Map(columns.map((name) => [name.toLowerCase(), name]));
const toColumn = (header: string) => columnsByKey.get(header.toLowerCase().replaceAll(/[\s_-]/g, ''));

function readHeader(file: string, header: readonly string[]): readonly string[] {
  const known = header.map(toColumn);
  const unknown = known.indexOf(undefined);
  const wrong = (what: string) => new CommandError('refused', `The first line of ${file} ${what}`);
  if (unknown >= 0)
    throw wrong(`has a column that is not known, number ${unknown + 1}; known are ${columns.join(', ')}`);
  const names = known.filter((name) => name !== undefined);
  if (new Set(names).size < names.length) throw wrong('names a column twice');
  if (!names.includes('email')) throw wrong('does not name the column email');
  return names;
}

/** The full name as the line says it, or made of first and last name. */
function fullNameOf({ fullName: given, firstName, lastName }: z.output<typeof line>): string | undefined {
  if (given !== undefined) return given;
  if (!firstName || !lastName) return firstName ?? lastName ?? undefined;
  return `${firstName} ${lastName}`;
}

function putLine(staging: Staging, place: string, cells: Readonly<Record<string, string>>): void {
  const values = Object.fromEntries(Object.entries(cells).filter(([, cell]) => cell.trim() !== ''));
  const parsed = line.safeParse(values);
  if (!parsed.success) {
    staging.refuse('users', ...problemsOf(place, parsed.error));
    return;
  }
  const { groups = [], role, email, addressLine1, city, state, country, postCode, ...names } = parsed.data;
  const postal = { addressLine1, city, state, country, postCode };
  const hasAddress = Object.values(postal).some((part) => part !== undefined);
  const made = fullName.safeParse(fullNameOf(parsed.data));
  const named = made.success ? { newFullName: made.data } : {};
  const user = { ...names, email, ...named, ...(hasAddress ? { address: postal } : {}) };
  const wanted = role === 'admin' ? ['admin', ...groups] : groups;
  const distinct = new Map(wanted.map((name) => [foldCase(name), name]));
  staging.put('users', { place, id: null, key: email, content: { user, groups: [...distinct.values()] } });
}

/**
 * Reads users from CSV (RFC 4180, with commas, UTF-8) with column names in the first line. Ends the command for another
 * first line, and for a file that is not CSV. Rule: CLI-16.
 */
export async function readCsvUsers(file: string, staging: Staging, progress: Progress): Promise<void> {
  let header: readonly string[] | null = null;
  const parser = parse({
    bom: true,
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    trim: true,
    max_record_size: recordBytesMax,
  });
  const take = async (rows: AsyncIterable<{ record: string[]; info: { lines: number } }>) => {
    for await (const { record, info } of rows) {
      const place = `line ${info.lines}`;
      if (header === null) header = readHeader(file, record);
      else if (record.length === header.length) {
        putLine(staging, place, Object.fromEntries(header.map((name, column) => [name, record[column] ?? ''])));
      } else {
        const message = `has ${record.length} cells, and the first one ${header.length}`;
        staging.refuse('users', { place, field: 'the line', message });
      }
    }
  };
  // Of what fails, the first counts: the rest of the pipeline is only broken off.
  let first: unknown = null;
  const noted = (rows: Parameters<typeof take>[0]) =>
    take(rows).catch((error: unknown) => {
      first = error;
      throw error;
    });
  try {
    await pipeline(Readable.from(fileText(file, progress)), parser, noted);
  } catch (last) {
    const error = first ?? last;
    if (!(error instanceof CsvError)) throw error;
    throw new CommandError('failed', `The file ${file} is not CSV from line ${parser.info.lines} on`, { cause: error });
  }
  if (header === null) throw new CommandError('refused', `The file ${file} is empty: its first line names the columns`);
}
