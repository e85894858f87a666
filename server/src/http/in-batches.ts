import { Readable } from 'node:stream';
import { second } from '../clock.ts';
import type { InBatches } from './endpoint.ts';

/** A list takes no longer than this, however slowly somebody reads it: it holds on to a moment of the store. */
const sendingMs = 60 * second;

type Serialize = (items: unknown) => string;

async function* textOf(
  seen: readonly (readonly unknown[])[],
  rest: AsyncIterator<readonly unknown[]>,
  serialize: Serialize,
): AsyncGenerator<string> {
  let lead = '[';
  const piece = (items: readonly unknown[]) => {
    const text = lead + serialize(items).slice(1, -1);
    lead = ',';
    return text;
  };
  for (const items of seen) yield piece(items);
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield piece(next.value);
  yield ']';
}

/**
 * The body of an answer that comes in batches: text where it is short, a stream where it is long. What fails at the
 * beginning is thrown; later, the stream breaks off, and so does the connection. Each batch holds something.
 * @param serialize writes an array of items as JSON
 * @param onFault told of what made the stream break off
 */
export async function batchBody(
  { batches }: InBatches<unknown>,
  serialize: Serialize,
  onFault: (error: unknown) => void,
): Promise<string | Readable> {
  const iterator = batches[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return '[]';
  const further = await iterator.next();
  if (further.done) return serialize(first.value);
  const body = Readable.from(textOf([first.value, further.value], iterator, serialize), { objectMode: false });
  const timer = setTimeout(() => body.destroy(new Error('a list was read too slowly')), sendingMs).unref();
  body.once('close', () => {
    clearTimeout(timer);
    // Whoever hangs up before anything was sent ends the list too: by then `textOf` has not even begun.
    Promise.resolve(iterator.return?.()).catch(onFault);
  });
  body.once('error', onFault);
  return body;
}
