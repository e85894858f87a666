import { z } from 'zod';

const mediaTypes = new WeakMap<z.core.$ZodType, readonly string[]>();
/** The fields that a form has besides its file; `null` for a file alone. */
const uploads = new WeakMap<z.core.$ZodType, z.ZodObject | null>();

/** Declares a response of bytes of a media type, such as `image/jpeg`, sent unchanged. */
export function bytesResponse(mediaType: string) {
  const schema = z.custom<Uint8Array>((given) => given instanceof Uint8Array);
  mediaTypes.set(schema, [mediaType]);
  return schema;
}

/** Context in which the text of a response is written. */
export interface OpenStream {
  /** Aborted once the reader has left, or the service stops. */
  readonly signal: AbortSignal;
  /** Checks again, by the credential of the request, that its sender is still authorized; throws the error. */
  readonly stillAdmitted: () => Promise<void>;
  /** Key of its reader: all streams of one caller have the same. */
  readonly reader: string;
}

/**
 * Text of any length that is written piece by piece, as fast as it is read. It keeps nothing of the store open: a slow
 * reader delays no one.
 */
export class StreamedText {
  readonly mediaType: string;
  readonly open: (stream: OpenStream) => AsyncIterable<string>;

  constructor(mediaType: string, open: (stream: OpenStream) => AsyncIterable<string>) {
    this.mediaType = mediaType;
    this.open = open;
  }
}

/** Declares a response of text of one of these media types, such as `text/csv`, written piece by piece. */
export function streamResponse(...types: readonly string[]) {
  const schema = z.custom<StreamedText>((given) => given instanceof StreamedText);
  mediaTypes.set(schema, types);
  return schema;
}

/**
 * In a request: one file, sent as `multipart/form-data` in the field `file`; its bytes come out. The body of an
 * operation that takes it is this and nothing else. Rule: PICTURE-8.
 */
export function uploadedFile() {
  const schema = z.custom<Uint8Array>((given) => given instanceof Uint8Array);
  uploads.set(schema, null);
  return schema;
}

/**
 * In a request: a form with a file in the field `file`, as its bytes, and at most one of each of these fields, as text.
 * Rule: FIT-78.
 */
export function uploadedForm<const S extends z.core.$ZodLooseShape>(fields: S) {
  const file = z.custom<Uint8Array>((given) => given instanceof Uint8Array, 'is required');
  const schema = z.strictObject({ ...fields, file });
  uploads.set(schema, z.object(fields));
  return schema;
}

/** A field of a form that holds JSON. */
export function formField<S extends z.ZodType>(schema: S) {
  return z
    .string()
    .transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue({ code: 'custom', message: 'must be JSON' });
        return z.NEVER;
      }
    })
    .pipe(schema);
}

/** Returns the fields that an uploaded form has besides its file; `null` for a file alone, or no upload at all. */
export function uploadFields(schema: z.ZodType | undefined): z.ZodObject | null {
  return (schema && uploads.get(schema)) ?? null;
}

/** Returns whether a body is an uploaded file. */
export function isUpload(schema: z.ZodType | undefined): boolean {
  return schema !== undefined && uploads.has(schema);
}

/** Forms of a response: bytes or text of a media type, JSON of a schema, or either. */
interface ResponseForms {
  readonly mediaTypes: readonly string[];
  readonly json: z.ZodType | undefined;
}

/** Returns the forms of a declared response. */
export function responseForms(schema: z.ZodType): ResponseForms {
  if (schema instanceof z.ZodUndefined) return { mediaTypes: [], json: undefined };
  const own = mediaTypes.get(schema);
  if (own !== undefined) return { mediaTypes: own, json: undefined };
  if (!(schema instanceof z.ZodUnion)) return { mediaTypes: [], json: schema };
  const options: readonly z.core.$ZodType[] = schema.options;
  const other = options.find((option) => mediaTypes.has(option));
  const json = options.find((option) => option instanceof z.ZodType && !mediaTypes.has(option));
  if (!other || !(json instanceof z.ZodType)) return { mediaTypes: [], json: schema };
  return { mediaTypes: mediaTypes.get(other) ?? [], json };
}
