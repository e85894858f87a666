import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { ApiError, refuseTooMany } from '../../base/errors.ts';
import { KeyedCounter } from '../../base/keyed-counter.ts';
import type { StreamedText } from '../media.ts';
import { scopeOf } from './request-scope.ts';

/** In one process, and of one caller. */
const openMax = 500;
const openMaxEach = 20;
const retryAfterSeconds = 10;

interface StreamParts {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly stillAdmitted: () => Promise<void>;
}

/** Streamed text responses of this process. */
export interface Streams {
  /**
   * Begins to write a response. Throws `tooManyRequests` while too many of this caller are running, `overloaded` of
   * all.
   */
  write(response: StreamedText, parts: StreamParts): Readable;
  /** Tells all of them that the service stops, and any that begin later. */
  end(): void;
}

/** Returns the key that a stream is counted for. */
function readerOf({ caller, id }: FastifyRequest): string {
  if (!caller) return id;
  return caller.kind === 'service' ? `service ${caller.clientId ?? ''}` : caller.userId;
}

/** Makes the place where streams are kept. */
export function streams(log: Logger): Streams {
  const open = new Set<AbortController>();
  const readers = new KeyedCounter('streams');
  let isEnding = false;

  function admitReader(reader: string): void {
    if (readers.of(reader) >= openMaxEach) throw refuseTooMany(openMaxEach, retryAfterSeconds);
    if (readers.all < openMax) return;
    throw new ApiError('overloaded', { headers: { 'retry-after': String(retryAfterSeconds) } });
  }

  return {
    write({ mediaType, open: begin }, { request, reply, stillAdmitted }) {
      reply.type(`${mediaType}; charset=utf-8`);
      // Its body would be discarded.
      if (request.method === 'HEAD') return Readable.from([]);
      const reader = readerOf(request);
      admitReader(reader);
      // Proxies pass each piece on as it arrives.
      reply.header('x-accel-buffering', 'no');
      const controller = new AbortController();
      const body = Readable.from(begin({ signal: controller.signal, stillAdmitted, reader }), { objectMode: false });
      open.add(controller);
      body.once('error', (error) => log.error({ err: error, requestId: request.id }, 'a stream broke off'));
      const scope = scopeOf(request, reply);
      const giveBack = readers.take(scope, reader);
      const end = scope.hold(() => {
        open.delete(controller);
        giveBack();
        // The body itself closes only once its pending read has ended.
        controller.abort();
        body.destroy();
      });
      body.once('close', end);
      if (isEnding) controller.abort();
      return body;
    },
    end() {
      isEnding = true;
      for (const controller of open.keys()) controller.abort();
    },
  };
}
