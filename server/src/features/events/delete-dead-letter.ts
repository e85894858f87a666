import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import { deleteDeadLetterRow } from '../../outbox/relay/relay-store.ts';

/** Rule: EVENT-23. */
export const deleteDeadLetter = endpoint({
  method: 'DELETE',
  path: '/events/dead-letters/:letterId',
  tag: 'Events',
  summary: 'Give up an event that was set aside; the event itself stays in the log',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ letterId: id }),
  response: { 200: messageResponse },
  async handle(services, { caller, write, params: { letterId }, origin }) {
    return write(async (tx) => {
      if (!(await deleteDeadLetterRow(tx, letterId))) throw new ApiError('notFound');
      await appendAudit(tx, services, {
        action: 'dead-letter.deleted',
        orgId: caller.orgId,
        actor: caller,
        subjectId: null,
        origin,
        details: { letterId },
      });
      return { message: 'Dead letter deleted successfully' };
    });
  },
});
