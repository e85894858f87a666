import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import { nextSlug } from '../../db/counters.ts';
import { endpoint } from '../../http/endpoint.ts';
import { foldCase, plainText } from '../../text/plain-text.ts';
import { groupRecord, newGroupRow, toGroupRecord } from './group.ts';
import { insertGroups, selectGroupByName } from './group-store.ts';

/** Rules: GROUP-1 to GROUP-3. */
export const createGroup = endpoint({
  method: 'POST',
  path: '/userGroups',
  tag: 'User groups',
  summary: 'Create a group without members',
  errors: [409],
  policy: { who: 'admin', scope: 'usergroup:write' },
  idempotency: { secrets: [] },
  tool: { name: 'create_group', title: 'Create a group' },
  body: z.object({
    name: plainText()
      .describe('No other group may have it, in any case')
      .meta({ examples: ['Research'] }),
    type: z.enum(['standard', 'custom']).meta({ examples: ['custom'] }),
  }),
  response: { 201: groupRecord },
  location: ({ _id }) => `/userGroups/${_id}`,
  async handle(services, { caller, write, remember, body: { name, type }, origin }) {
    const { orgId } = caller;
    return write(async (tx) => {
      if (await selectGroupByName(tx, orgId, foldCase(name))) throw new ApiError('groupNameTaken');
      const slug = await nextSlug(tx, 'usergroup');
      const made = newGroupRow({ id: services.newId(), orgId, slug, name, type }, services.clock.now());
      await insertGroups(tx, [made]);
      const record = { action: 'group.created', orgId, actor: caller, subjectId: made.id, origin } as const;
      await appendAudit(tx, services, {
        ...record,
        details: { name, type },
        changes: changesBetween(null, { name, type }),
      });
      return remember(tx, toGroupRecord(made, []));
    });
  },
});
