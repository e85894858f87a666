import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { RefusedError } from '../../base/errors.ts';
import { isUpload } from '../media.ts';
import { bodyBytesMax, readJsonBody, refuseSize } from '../request-rules.ts';
import { readUpload, uploadBytesMax } from './upload.ts';
import { isFormType, readForm } from './url-form.ts';

/**
 * The bytes of a body that arrived along with its headers, as nearly all do; null for one that is still on its way. Waiting
 * for what is there already costs as much as the rest of a request. Throws `bodyTooLarge`.
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
    // What was broken off already tells no one any more, and would be waited for for ever.
    if (message.destroyed && !message.complete) {
      reject(message.errored ?? new RefusedError('unreadableRequest'));
      return;
    }
    const chunks: Buffer[] = [];
    let length = 0;
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= limit) return;
      // What is still to come is thrown away.
      message.off('data', onData);
      chunks.length = 0;
      reject(new RefusedError('bodyTooLarge', { params: { limit }, headers: { connection: 'close' } }));
    };
    message.on('data', onData);
    message.once('end', () => resolve(Buffer.concat(chunks)));
    message.once('error', reject);
    message.once('close', () => reject(new RefusedError('unreadableRequest')));
  });
}

/** How large a body may be, which is for its address to say. */
export function bodyBytesOf({ routeOptions: { config } }: FastifyRequest): number {
  return isUpload(config?.endpoint?.body) ? uploadBytesMax : bodyBytesMax;
}

/** What a body says, whatever way its address wants it written. */
function readBody({ headers, routeOptions }: FastifyRequest, bytes: Buffer): unknown {
  const contentType = headers['content-type'];
  const endpoint = routeOptions.config.endpoint;
  if (isUpload(endpoint?.body)) return readUpload(contentType, bytes);
  const isForm = endpoint?.isOAuth === true && isFormType(contentType);
  return isForm ? readForm(bytes) : readJsonBody(contentType, bytes);
}

/** Tells the framework what a body says, at once where that is known at once. */
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
