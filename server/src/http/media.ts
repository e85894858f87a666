import { z } from 'zod';

const mediaTypes = new WeakMap<z.core.$ZodType, string>();
const uploads = new WeakSet<z.core.$ZodType>();

/** In an answer: bytes of a media type, such as `image/jpeg`, sent as they are. */
export function bytesAnswer(mediaType: string) {
  const schema = z.custom<Uint8Array>((given) => given instanceof Uint8Array);
  mediaTypes.set(schema, mediaType);
  return schema;
}

/**
 * In a request: one file, sent as `multipart/form-data` in the field `file`; its bytes come out. The body of an
 * operation that takes it is this and nothing else. Rule: PICTURE-8.
 */
export function uploadedFile() {
  const schema = z.custom<Uint8Array>((given) => given instanceof Uint8Array);
  uploads.add(schema);
  return schema;
}

/** Whether a body is an uploaded file. */
export function isUpload(schema: z.ZodType | undefined): boolean {
  return schema !== undefined && uploads.has(schema);
}

/** What an answer may be: bytes of a media type, JSON of a schema, or either. */
interface AnswerForms {
  readonly mediaType: string | undefined;
  readonly json: z.ZodType | undefined;
}

/** Tells the forms of a declared answer apart. */
export function answerForms(schema: z.ZodType): AnswerForms {
  if (schema instanceof z.ZodUndefined) return { mediaType: undefined, json: undefined };
  const own = mediaTypes.get(schema);
  if (own !== undefined) return { mediaType: own, json: undefined };
  if (!(schema instanceof z.ZodUnion)) return { mediaType: undefined, json: schema };
  const options: readonly z.core.$ZodType[] = schema.options;
  const bytes = options.find((option) => mediaTypes.has(option));
  const json = options.find((option) => option instanceof z.ZodType && !mediaTypes.has(option));
  if (!bytes || !(json instanceof z.ZodType)) return { mediaType: undefined, json: schema };
  return { mediaType: mediaTypes.get(bytes), json };
}
