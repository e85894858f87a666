import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const lastStart = z.object({ baseUrl: z.string(), frontendUrl: z.string() });

/** The public addresses with which a server last started on a data directory. */
export type LastStart = Readonly<z.infer<typeof lastStart>>;

const fileOf = (dataDir: string) => join(dataDir, 'last-start.json');

/** Notes the public addresses for commands that are run without the server's environment. Never throws. Rule: FIT-107. */
export function writeLastStart({ dataDir, baseUrl, frontendUrl }: LastStart & { readonly dataDir: string }): void {
  try {
    writeFileSync(fileOf(dataDir), `${JSON.stringify({ baseUrl, frontendUrl })}\n`, { mode: 0o600 });
  } catch {
    // Commands use their own configuration then.
  }
}

/** Returns the addresses of the last start; `null`: unknown. */
export function readLastStart(dataDir: string): LastStart | null {
  try {
    return lastStart.parse(JSON.parse(readFileSync(fileOf(dataDir), 'utf8')));
  } catch {
    return null;
  }
}
