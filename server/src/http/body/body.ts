import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { ApiError } from '../../base/errors.ts';
import { isUpload, uploadFields } from '../media.ts';
import { bodyBytesMax, readJsonBody, refuseSize } from '../request-rules.ts';
import { askForBody } from './expected-continue.ts';
import { readUpload, uploadBytesMax } from './upload.ts';
import { readUploadForm } from './upload-form.ts';
import { isFormType, readForm } from './url-form.ts';

/**
 * Returns the bytes of a body that arrived along with its headers, as nearly all do; null for one that is still
 * arriving. Awaiting a body that is there costs as much as the rest of a request. Throws `bodyTooLarge`.
 */
function arrivedBytes(message: IncomingMessage, limit: number): Buffer | null {
  if (!message.complete) return null;
  const bytes: unknown = message.read();
  if (!Buffer.isBuffer(bytes)) return Buffer.alloc(0);
  if (bytes.length > limit) throw refuseSize(limit);
  return bytes;
}

/** Waits for the bytes of a body. Throws `bodyTooLarge`, and the error of a connection that breaks off. */
export function readBytes(message: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // An aborted message emits no further events, and would be awaited for ever.
    if (message.destroyed && !message.complete) {
      reject(message.errored ?? new ApiError('unreadableRequest'));
      return;
    }
    askForBody(message);
    const chunks: Buffer[] = [];
    let length = 0;
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= limit) return;
      // The rest is discarded.
      message.off('data', onData);
      chunks.length = 0;
      reject(refuseSize(limit));
    };
    message.on('data', onData);
    message.once('end', () => resolve(Buffer.concat(chunks)));
    message.once('error', reject);
    message.once('close', () => reject(new ApiError('unreadableRequest')));
  });
}

/** Returns the maximum size of a body, which depends on the address. */
export function bodyBytesOf({ routeOptions: { config } }: FastifyRequest): number {
  return isUpload(config?.endpoint?.body) ? uploadBytesMax : bodyBytesMax;
}

/** Parses a body in the format of its address. */
function readBody({ headers, routeOptions }: FastifyRequest, bytes: Buffer): unknown {
  const contentType = headers['content-type'];
  const endpoint = routeOptions.config.endpoint;
  const fields = uploadFields(endpoint?.body);
  if (fields) return readUploadForm(contentType, bytes, Object.keys(fields.shape));
  if (isUpload(endpoint?.body)) return readUpload(contentType, bytes);
  const isForm = endpoint?.isOAuth === true && isFormType(contentType);
  return isForm ? readForm(bytes) : readJsonBody(contentType, bytes);
}

/** Passes the parsed body to the framework, synchronously where possible. */
export function parseBody(
  request: FastifyRequest,
  message: IncomingMessage,
  done: (error: null, body: unknown) => void,
): Promise<unknown> | undefined {
  const limit = bodyBytesOf(request);
  const bytes = arrivedBytes(message, limit);
  if (!bytes) return readBytes(message, limit).then((later) => readBody(request, later));
  const body = readBody(request, bytes);
  if (body instanceof Promise) return body;
  done(null, body);
  return undefined;
}
