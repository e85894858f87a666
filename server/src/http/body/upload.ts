import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { MIMEType } from 'node:util';
import { second } from '../../base/clock.ts';
import { ApiError, refuseInput } from '../../base/errors.ts';

/** Bytes of an uploaded file. Rule: PICTURE-9. */
export const fileBytesMax = 1_048_576;
/** Bytes of a body with a file: the form around it needs some. */
export const uploadBytesMax = fileBytesMax + 16_384;

/** The field of a form that holds the file. */
export const fileField = 'file';
/** Time that parsing a form may take. */
export const parseMs = 5 * second;
const contentTypeMax = 256;
/** RFC 2046, section 5.1.1. */
const boundaryForm = /^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/;
const limits = { fieldSize: 1_024, fileSize: fileBytesMax + 1, headerPairs: 20, headerSize: 16_384 };

/** The error of a form that is not as it must be. */
export function refuseForm(problem: string): ApiError {
  return refuseInput({ field: `body.${fileField}`, message: problem });
}

interface Part {
  readonly name: string;
  readonly bytes: Promise<Uint8Array>;
}

function readType(contentType: string): MIMEType | null {
  // What Node does with spaces in it takes time that grows with their square.
  if (contentType.length > contentTypeMax) return null;
  try {
    return new MIMEType(contentType);
  } catch {
    return null;
  }
}

/** Returns the boundary between the parts of a form. */
export function boundaryOf(contentType: string | undefined): string {
  const type = readType(contentType ?? '');
  if (type?.essence !== 'multipart/form-data') throw new ApiError('bodyNotForm');
  const boundary = type.params.get('boundary');
  if (boundary === null || !boundaryForm.test(boundary)) throw refuseForm('must be sent in a form with a boundary');
  return boundary;
}

/**
 * Returns whether a form has more than so many parts, whatever they are. Checked before they are parsed: the parser skips
 * malformed parts, and takes seconds for a form that is nothing but boundaries.
 */
export function hasMoreParts(form: Buffer, boundary: string, partsMax: number): boolean {
  const delimiter = `\r\n--${boundary}`;
  // The line break before the first one may be missing.
  let left = form.indexOf(delimiter.slice(2)) === 0 ? partsMax : partsMax + 1;
  for (let at = form.indexOf(delimiter); at >= 0 && left >= 0; at = form.indexOf(delimiter, at + delimiter.length)) {
    left -= 1;
  }
  return left < 0;
}

/** The parser stops where a part that it leaves out is larger than its buffer, and says nothing any more. */
const bufferBytes = 2 * uploadBytesMax;

/** The part of a form that has no more than one; `undefined` where there is none. A plain field is a part without name. */
async function readPart(form: Buffer, boundary: string): Promise<Part | undefined> {
  const headers = { 'content-type': `multipart/form-data; boundary="${boundary}"` };
  const { Busboy } = await import('@fastify/busboy');
  const parser = new Busboy({ headers, limits, fileHwm: bufferBytes });
  let part: Part | undefined;
  parser.on('file', (name, stream) => {
    const bytes = buffer(stream);
    // The parser reports it as well; the part may not be awaited yet.
    bytes.catch(() => {});
    part = { name, bytes };
  });
  parser.on('field', () => {
    part = { name: '', bytes: Promise.resolve(new Uint8Array()) };
  });
  const finished = once(parser, 'finish', { signal: AbortSignal.timeout(parseMs) });
  parser.end(form);
  await finished;
  return part;
}

interface Cut {
  /** The form as it would be with an empty file. */
  readonly hollow: Buffer;
  readonly content: Buffer;
}

/** Returns the content of the only part of a form; `null` where the form is incomplete. */
function cutContent(form: Buffer, boundary: string): Cut | null {
  const headers = form.indexOf('\r\n\r\n', form.indexOf(`--${boundary}`));
  const end = form.lastIndexOf(`\r\n--${boundary}`);
  const start = headers + 4;
  if (headers < 0 || end < start) return null;
  return { hollow: Buffer.concat([form.subarray(0, start), form.subarray(end)]), content: form.subarray(start, end) };
}

/**
 * Reads the one file of a form. `undefined` for an empty body. Throws 415 for another kind of body, 400 for a form that
 * holds anything but one file in the field `file`, 413 for a file over 1 MB. Rules: PICTURE-8, PICTURE-9.
 */
export async function readUpload(contentType: string | undefined, form: Buffer): Promise<Uint8Array | undefined> {
  if (form.length === 0) return undefined;
  const boundary = boundaryOf(contentType);
  if (hasMoreParts(form, boundary, 1)) throw refuseForm('must be the only part of the form');
  // The parser takes milliseconds for each megabyte, in which no other request is served: it gets everything but the
  // content.
  const cut = cutContent(form, boundary);
  const part = await readPart(cut?.hollow ?? form, boundary).catch(() => {
    throw refuseForm('must be sent in a form that is complete');
  });
  if (!part) throw refuseForm('is required');
  if (part.name !== fileField) throw refuseForm('is required: a file, in a field of this name');
  const bytes = cut ? cut.content : await part.bytes;
  if (bytes.length > fileBytesMax) throw new ApiError('fileTooLarge', { params: { limit: fileBytesMax } });
  return bytes;
}
