import { type RawBuilder, sql } from 'kysely';
import type { HotQuery, Placeholders, Reader } from './database.ts';

/** Stands for a parameter while a hot query is built. */
class Marker {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** SQL with the order in which its parameters are taken from the arguments. */
interface Statement<A extends object> {
  readonly sql: string;
  readonly bind: (args: A) => unknown[];
}

/** Compiles a hot query once, remembering which argument belongs at which place. */
export function compileStatement<A extends object, R>(query: HotQuery<A, R>, read: Reader): Statement<A> {
  const placeholders = new Proxy({} as Placeholders<A>, {
    get: (_, name): RawBuilder<unknown> => sql`${new Marker(String(name))}`,
  });
  const compiled = query.build(read, placeholders).compile();
  const sources = compiled.parameters.map((parameter) => (parameter instanceof Marker ? parameter.name : parameter));
  const isArgument = compiled.parameters.map((parameter) => parameter instanceof Marker);
  return {
    sql: compiled.sql,
    bind: (args) => {
      const given = args as Readonly<Record<string, unknown>>;
      return sources.map((source, place) => (isArgument[place] ? given[source as string] : source));
    },
  };
}
