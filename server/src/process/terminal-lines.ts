import { styleText } from 'node:util';
import { z } from 'zod';

/** An entry of the log for a request, as `http/server/request-log.ts` writes it for a terminal. */
const requestEntry = z.object({
  time: z.string(),
  method: z.string(),
  path: z.string(),
  status: z.number(),
  ms: z.number(),
  who: z.string(),
  network: z.string().optional(),
});

function shownStatus(status: number, hasColors: boolean): string {
  if (!hasColors || status < 400) return String(status);
  return styleText(status < 500 ? 'yellow' : 'red', String(status));
}

function readEntry(line: string): z.infer<typeof requestEntry> | null {
  try {
    return requestEntry.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}

/**
 * Returns the line of a request for people: time, method, path, status, milliseconds, caller; `null` for any other entry
 * of the log. Rule: FIT-103.
 * @param line an entry, in JSON, with its credentials masked
 */
export function requestLine(line: string, hasColors: boolean): string | null {
  const entry = readEntry(line);
  if (entry === null) return null;
  const { time, method, path, status, ms, who, network } = entry;
  const clock = new Date(time).toLocaleTimeString('en-GB');
  const place = network === undefined ? '' : `, ${network}`;
  return `${clock} ${method.padEnd(6)} ${path} ${shownStatus(status, hasColors)} ${ms} ms  ${who}${place}\n`;
}
