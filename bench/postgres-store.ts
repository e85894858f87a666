import { PostgresServer } from '../faults/postgres.ts';
import { freePort } from './latchkey.ts';

let server = null;

/** The address of an empty database in a PostgreSQL of its own, which writes to disk before it answers. */
export async function startPostgres() {
  server = new PostgresServer(await freePort());
  server.make();
  await server.start();
  await server.run('create database latchkey');
  return `postgres://postgres@${server.address}/latchkey`;
}

/** Ends what was started, if anything was. */
export async function endPostgres() {
  await server?.stop();
  server = null;
}
