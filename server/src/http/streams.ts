import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { RefusedError } from '../errors.ts';
import type { StreamedText } from './media.ts';

/** In one process, and of one caller. */
const openMax = 500;
const openMaxEach = 20;
const retryAfter = '10';

interface StreamParts {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly stillAdmitted: () => Promise<void>;
}

/** The answers of this process that are written piece by piece. */
export interface Streams {
  /** Begins to write an answer. Throws `overloaded` while too many are under way, in all or for this caller. */
  write(answer: StreamedText, parts: StreamParts): Readable;
  /** Tells all of them that the service stops, and any that begin later. */
  end(): void;
}

/** Whom a stream is counted for. */
function readerOf({ caller, id }: FastifyRequest): string {
  if (!caller) return id;
  return caller.kind === 'service' ? `service ${caller.clientId ?? ''}` : caller.userId;
}

/** Makes the place where streams are kept. */
export function streams(log: Logger): Streams {
  const open = new Map<AbortController, string>();
  let isEnding = false;

  function admitReader(reader: string): void {
    let own = 0;
    for (const other of open.values()) if (other === reader) own += 1;
    if (open.size < openMax && own < openMaxEach) return;
    throw new RefusedError('overloaded', { headers: { 'retry-after': retryAfter } });
  }

  return {
    write({ mediaType, open: begin }, { request, reply, stillAdmitted }) {
      reply.type(`${mediaType}; charset=utf-8`);
      // Nobody would read it.
      if (request.method === 'HEAD') return Readable.from([]);
      const reader = readerOf(request);
      admitReader(reader);
      // Whatever stands in between passes each piece on as it comes.
      reply.header('x-accel-buffering', 'no');
      const controller = new AbortController();
      const body = Readable.from(begin({ signal: controller.signal, stillAdmitted }), { objectMode: false });
      open.set(controller, reader);
      const end = () => {
        open.delete(controller);
        controller.abort();
      };
      body.once('close', end);
      // The body itself is closed no sooner than what is being waited for is there.
      reply.raw.once('close', end);
      body.once('error', (error) => log.error({ err: error, requestId: request.id }, 'a stream broke off'));
      if (isEnding || reply.raw.destroyed) controller.abort();
      return body;
    },
    end() {
      isEnding = true;
      for (const controller of open.keys()) controller.abort();
    },
  };
}
