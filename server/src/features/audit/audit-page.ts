import { z } from 'zod';
import { components, idResponse, timestamp } from '../../http/schemas.ts';

const nullableId = idResponse.nullable();

/** A record as it goes out. Rule: AUDIT-9. */
export const auditRecord = z.object({
  id: idResponse,
  sequence: z.int().describe('Counts up from 1, without gaps'),
  timestamp,
  action: z.string().meta({ examples: ['token.created'] }),
  outcome: z.enum(['success', 'failure']),
  orgId: nullableId.describe('null: the system as a whole'),
  actor: z
    .object({
      userId: nullableId,
      tokenId: nullableId.describe('The personal access token that was used; null: a session, or none'),
      clientId: nullableId.describe('A service client'),
    })
    .describe('All null: the service itself, its operator, or an unproved caller'),
  subjectId: nullableId,
  subjectKind: z
    .string()
    .nullable()
    .meta({ examples: ['token'] }),
  subjectOwnerId: nullableId.describe('Whose the subject is: of a token or a session'),
  network: z.string().nullable().describe('null: erased'),
  requestId: z.string(),
  details: z.record(z.string(), z.unknown()).describe('Further details'),
  changes: z
    .record(z.string(), z.object({ before: z.unknown(), after: z.unknown() }))
    .describe('The changes; a secret shows only that there is one'),
  isErased: z.boolean().describe('Whether network, details and changes were erased with the data of a user'),
  hash: z.string().describe('Of this record and the hash of the one before it'),
});
components.add(auditRecord, { id: 'AuditRecord' });

/** End of a page: the next page begins after this record. */
export interface AuditCursor {
  /** Milliseconds since 1970. */
  readonly occurredAt: number;
  readonly sequence: number;
}

const cursorForm = /^(\d{1,15})\.(\d{1,15})$/;

/** Cursor of the next page, from `nextCursor` of the page before. */
export const auditCursor = z
  .string()
  .regex(cursorForm, 'must be the nextCursor of another page')
  .transform((text): AuditCursor => {
    const [, occurredAt, sequence] = cursorForm.exec(text) ?? [];
    return { occurredAt: Number(occurredAt), sequence: Number(sequence) };
  });

/** A place as the next page is asked for by it. */
export function toCursor({ occurredAt, sequence }: AuditCursor): string {
  return `${occurredAt}.${sequence}`;
}
