import { type RawBuilder, sql } from 'kysely';
import type { Arguments, Placeholders, PreparedQuery, Reader } from './database.ts';

/** Stands for a parameter while a hot query is built. */
class Marker {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** SQL with the order in which its parameters are taken from the arguments. */
interface Statement<A extends Arguments> {
  readonly sql: string;
  readonly bind: (args: A) => unknown[];
}

/** Compiles a hot query once, remembering which argument belongs at which place. */
export function compileStatement<A extends Arguments, T>(query: PreparedQuery<A, T>, read: Reader): Statement<A> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the proxy has whatever name it is asked for
  const placeholders = new Proxy({} as Placeholders<A>, {
    get: (_, name): RawBuilder<unknown> => sql`${new Marker(String(name))}`,
  });
  const compiled = query.build(read, placeholders).compile();
  const sources = compiled.parameters.map((parameter) =>
    parameter instanceof Marker ? (args: A) => args[parameter.name] : () => parameter,
  );
  return { sql: compiled.sql, bind: (args) => sources.map((source) => source(args)) };
}
