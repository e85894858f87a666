import { Readable } from 'node:stream';
import { second } from '../../base/clock.ts';
import type { Scope } from '../../base/scope.ts';
import type { StreamedList } from '../endpoint.ts';

/** Maximum duration of a list, however slow its reader: it keeps a snapshot of the store open. */
const sendingMs = 60 * second;

type Serialize = (items: readonly unknown[]) => string;

/** Text before the first item and after the last one. */
type Frame = readonly [before: string, after: string];

async function* textOf(
  seen: readonly (readonly unknown[])[],
  rest: AsyncIterator<readonly unknown[]>,
  { serialize, frame: [before, after] }: { readonly serialize: Serialize; readonly frame: Frame },
): AsyncGenerator<string> {
  let lead = before;
  const piece = (items: readonly unknown[]) => {
    const text = lead + serialize(items).slice(1, -1);
    lead = ',';
    return text;
  };
  for (const items of seen) yield piece(items);
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield piece(next.value);
  yield after;
}

interface StreamedBodyOptions {
  /** Scope of the request: the list ends with it. */
  readonly scope: () => Scope;
  /** Called with what made the stream break off. */
  readonly onFault: (error: unknown) => void;
  /** The brackets of an array, unless it is given. */
  readonly frame?: Frame;
}

/**
 * Returns the body of a streamed list: text where it is short, a stream where it is long. An error at the beginning is
 * thrown; later, the stream breaks off, and so does the connection. No batch is empty.
 * @param serialize writes an array of items as JSON
 */
export async function streamedBody(
  { rows }: Pick<StreamedList<unknown>, 'rows'>,
  serialize: Serialize,
  { scope, onFault, frame = ['[', ']'] }: StreamedBodyOptions,
): Promise<string | Readable> {
  const iterator = rows[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done) return frame.join('');
  const further = await iterator.next();
  if (further.done) return frame.join(serialize(first.value).slice(1, -1));
  const seen = [first.value, further.value];
  const body = Readable.from(textOf(seen, iterator, { serialize, frame }), { objectMode: false });
  const timer = setTimeout(() => body.destroy(new Error('a list was read too slowly')), sendingMs).unref();
  body.once('close', () => {
    clearTimeout(timer);
    // A client that hangs up before anything was sent ends the list too: `textOf` has not even begun then.
    Promise.resolve(iterator.return?.()).catch(onFault);
  });
  body.once('error', onFault);
  body.once(
    'close',
    scope().hold(() => body.destroy()),
  );
  return body;
}
