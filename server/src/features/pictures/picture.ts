import { bytesAnswer, uploadedFile } from '../../http/media.ts';

/** The media type of every stored picture. Rule: PICTURE-13. */
export const pictureType = 'image/jpeg';

/** A picture in an answer. */
export const pictureAnswer = bytesAnswer(pictureType);

/** A picture in a request. Rule: PICTURE-8. */
export const pictureBody = uploadedFile();
