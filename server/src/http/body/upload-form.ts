import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { ApiError, refuseInput } from '../../base/errors.ts';
import { boundaryOf, fileBytesMax, fileField, hasMoreParts, parseMs, refuseForm } from './upload.ts';

const fieldBytesMax = 8_192;
const nameMax = 100;

type Form = Record<string, Uint8Array | string>;

/** Parses a form of few parts. Throws the parser's error, and the problem of a field. */
async function parse(form: Buffer, boundary: string, fields: readonly string[]): Promise<Form> {
  const headers = { 'content-type': `multipart/form-data; boundary="${boundary}"` };
  const limits = { fieldSize: fieldBytesMax, fileSize: fileBytesMax + 1, headerPairs: 20, headerSize: 16_384 };
  const { Busboy } = await import('@fastify/busboy');
  const parser = new Busboy({ headers, limits, fileHwm: 2 * fileBytesMax });
  const found = new Map<string, Promise<Uint8Array> | string>();
  const problems: ApiError[] = [];
  const keep = (name: string, value: Promise<Uint8Array> | string, isKnown: boolean) => {
    const at = `body.${name.slice(0, nameMax)}`;
    if (!isKnown) problems.push(refuseInput({ field: at, message: 'is not a known field of the form' }));
    else if (found.has(name)) problems.push(refuseInput({ field: at, message: 'is there twice' }));
    else found.set(name, value);
  };
  parser.on('file', (name, stream) => {
    const bytes = buffer(stream);
    // The parser reports it as well; the part may not be awaited yet.
    bytes.catch(() => {});
    keep(name, bytes, name === fileField);
  });
  parser.on('field', (name, value) => {
    keep(name, value, fields.includes(name));
    // It is cut there.
    if (Buffer.byteLength(value) >= fieldBytesMax) problems.push(refuseForm('must be in a form with shorter fields'));
  });
  const finished = once(parser, 'finish', { signal: AbortSignal.timeout(parseMs) });
  parser.end(form);
  await finished;
  const [problem] = problems;
  if (problem) throw problem;
  const entries = [...found].map(async ([name, value]) => [name, await value] as const);
  return Object.fromEntries(await Promise.all(entries));
}

/**
 * Reads a form with one file and some fields. `undefined` for an empty body. Throws 415 for another kind of body, 400 for
 * a form with other fields, or with one of them twice, 413 for a file over 1 MB. Rule: FIT-78.
 */
export async function readUploadForm(
  contentType: string | undefined,
  form: Buffer,
  fields: readonly string[],
): Promise<Form | undefined> {
  if (form.length === 0) return undefined;
  const boundary = boundaryOf(contentType);
  if (hasMoreParts(form, boundary, fields.length + 1)) throw refuseForm('must be in a form with no other parts');
  const parsed = await parse(form, boundary, fields).catch((error: unknown) => {
    throw error instanceof ApiError ? error : refuseForm('must be sent in a form that is complete');
  });
  const file = parsed[fileField];
  if (file instanceof Uint8Array && file.length > fileBytesMax) {
    throw new ApiError('fileTooLarge', { params: { limit: fileBytesMax } });
  }
  return parsed;
}
