import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Limits } from '../../limits/limits.ts';
import { rowsCharged } from '../budgets.ts';
import { type AnyEndpoint, RecordWithStreamedList, type StreamedList } from '../endpoint.ts';
import { scopeOf } from './request-scope.ts';
import { responseText } from './response-text.ts';
import { streamedBody } from './streamed-body.ts';

/** Serializer of the items of a response, and the text around them. */
interface Pieces {
  readonly itemsText: (items: unknown, reply: FastifyReply) => string;
  readonly frame: readonly [before: string, after: string];
}

/** Returns the list among the forms of a response, so that its batches are written without choosing the form again. */
function listIn(json: z.ZodType): z.ZodType | undefined {
  const options: readonly z.core.$ZodType[] = json instanceof z.ZodUnion ? json.options : [json];
  return options.find((option) => option instanceof z.ZodArray);
}

/** Returns the last field of a response, which may be a list. */
function lastFieldIn(json: z.ZodType): readonly [name: string, schema: z.ZodType] | undefined {
  return json instanceof z.ZodObject ? Object.entries<z.ZodType>(json.shape).at(-1) : undefined;
}

/** Returns a writer of an endpoint's lists, and of records that end with a list, as they are read. */
export function listWriter(
  { method, path }: AnyEndpoint,
  json: z.ZodType | undefined,
  { limits, log }: { readonly limits: Limits; readonly log: Logger },
) {
  const list = json && listIn(json);
  const listText = list && responseText(list);
  const [lastName, lastSchema] = (json && lastFieldIn(json)) ?? [];
  const recordText = json && responseText(json);
  const lastText = lastSchema && responseText(lastSchema);

  function piecesOf(response: StreamedList<unknown>, reply: FastifyReply): Pieces {
    if (response instanceof RecordWithStreamedList && recordText && lastText && response.field === lastName) {
      const text = recordText({ ...response.record, [response.field]: [] }, reply);
      return { itemsText: lastText, frame: [text.slice(0, -2), text.slice(-2)] };
    }
    if (!listText || response instanceof RecordWithStreamedList)
      throw new Error(`${method} ${path} declares no such list`);
    return { itemsText: listText, frame: ['[', ']'] };
  }

  return (response: StreamedList<unknown>, request: FastifyRequest, reply: FastifyReply) => {
    const { itemsText, frame } = piecesOf(response, reply);
    reply.type('application/json; charset=utf-8');
    // Its body would be discarded; only reading it would tell its length.
    if (request.method === 'HEAD') return Readable.from([]);
    const charge = rowsCharged(limits, request.caller);
    const serialize = (items: readonly unknown[]) => {
      charge(items.length);
      return itemsText(items, reply);
    };
    const onFault = (error: unknown) => log.error({ err: error, requestId: request.id }, 'a list broke off');
    return streamedBody(response, serialize, { scope: () => scopeOf(request, reply), onFault, frame });
  };
}
