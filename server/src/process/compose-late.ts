// What many a service never needs is loaded once it is needed: that takes time at the start, and memory ever after.
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Database } from '../db/database.ts';
import { openSqlite } from '../db/sqlite/sqlite.ts';
import type { PictureCompressor } from '../images/picture-compressor.ts';
import type { McpService } from '../mcp/agents.ts';
import type { McpParts } from '../mcp/mcp-service.ts';

/** Opens the store that is configured. */
export async function openStore({ dataDir, databaseUrl }: Config, log: Logger): Promise<Database> {
  if (!databaseUrl) return openSqlite(dataDir);
  const { openPostgres } = await import('../db/postgres/postgres.ts');
  return openPostgres(databaseUrl, log);
}

/** Returns a picture compressor that is loaded with the first picture. */
export function openPictures(): PictureCompressor {
  let opened: Promise<PictureCompressor> | undefined;
  return {
    compress: async (...given) => {
      opened ??= import('../images/picture-compressor.ts').then(({ pictureCompressor }) => pictureCompressor());
      return (await opened).compress(...given);
    },
  };
}

/** The protocol of agents, from the first of their requests on. */
export function openAgents(parts: McpParts): McpService {
  let opened: McpService | undefined;
  const open = async () => {
    const { openMcp } = await import('../mcp/mcp-service.ts');
    opened ??= openMcp(parts);
    return opened;
  };
  return {
    endpoints: parts.endpoints,
    respond: (request) => (opened ? opened.respond(request) : open().then((service) => service.respond(request))),
    close: async () => opened?.close(),
  };
}
