import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { jsonSchema } from '../schemas.ts';

/**
 * What writes answers of a schema as JSON: the declared fields, and no others. Compiled with the first of them: a service
 * gives most of the answers that it could give seldom or never.
 */
export function answerText(schema: z.ZodType): (answer: unknown, reply: FastifyReply) => string {
  let write: ((answer: unknown) => string) | undefined;
  return (answer, reply) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is compiled takes whatever it is given
    write ??= reply.compileSerializationSchema(jsonSchema(schema, 'output')) as (answer: unknown) => string;
    return write(answer);
  };
}
