import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { jsonSchema } from '../schemas.ts';

/**
 * Returns a writer that serializes responses of a schema to JSON: the declared fields, and no others. Compiled with the
 * first of them: most kinds of response are rare.
 */
export function responseText(schema: z.ZodType): (response: unknown, reply: FastifyReply) => string {
  let write: ((response: unknown) => string) | undefined;
  return (response, reply) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is compiled takes whatever it is given
    write ??= reply.compileSerializationSchema(jsonSchema(schema, 'output')) as (response: unknown) => string;
    return write(response);
  };
}
