import { bytesAnswer, uploadedFile } from '../../http/media.ts';

/** The media type of every stored picture. Rule: PICTURE-13. */
export const pictureType = 'image/jpeg';

/** A picture in an answer. */
export const pictureAnswer = bytesAnswer(pictureType);

/** A picture in a request. Rule: PICTURE-8. */
export const pictureBody = uploadedFile();

/** What the audit log says of a picture: its type and size, and nothing of what it shows. */
export function auditedPicture(bytes: Uint8Array | null) {
  return bytes && { type: pictureType, bytes: bytes.length };
}
