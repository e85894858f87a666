import { bytesResponse, uploadedFile } from '../../http/media.ts';

/** The media type of every stored picture. Rule: PICTURE-13. */
export const pictureType = 'image/jpeg';

/** A picture in a response. */
export const pictureResponse = bytesResponse(pictureType);

/** A picture in a request. Rule: PICTURE-8. */
export const pictureBody = uploadedFile();

/** Returns the audit details of a picture: type and size, not its content. */
export function auditedPicture(bytes: Uint8Array | null) {
  return bytes && { type: pictureType, bytes: bytes.length };
}
