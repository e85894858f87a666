/** Boundary of the forms in tests. */
export const boundary = 'edge';
/** The content type of those forms. */
export const formType = `multipart/form-data; boundary=${boundary}`;
/** The header of a part that is the file of an upload. */
export const disposition = 'Content-Disposition: form-data; name="file"; filename="p.png"';
/** End of a form. */
export const formEnd = `--${boundary}--\r\n`;

/** Text as bytes, a byte for each character. */
export const bytesOf = (text: string) => Buffer.from(text, 'latin1');

/** A part, by default the file of an upload, as text. */
export function part(content: string, ...headers: readonly string[]): string {
  const lines = headers.length > 0 ? headers : [disposition, 'Content-Type: image/png'];
  return `--${boundary}\r\n${lines.join('\r\n')}\r\n\r\n${content}\r\n`;
}

/** A form of those parts, with its end. */
export const formOf = (...parts: readonly string[]) => bytesOf(parts.join('') + formEnd);

/** The form of an ordinary upload. */
export const uploadForm = (content: Buffer) => formOf(part(content.toString('latin1')));
