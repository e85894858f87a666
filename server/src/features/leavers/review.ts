import { z } from 'zod';
import { idAnswer, timestamp } from '../../http/schemas.ts';

/** What goes on without a user who made it, and may know its secrets, as it goes out. Rule: LEAVER-4. */
export const needsReview = z.object({
  serviceClients: z.array(z.object({ clientId: idAnswer, name: z.string(), createdAt: timestamp })),
  webhooks: z.array(z.object({ id: idAnswer, url: z.string(), createdAt: timestamp })),
  settings: z.array(z.object({ name: z.enum(['oidc', 'smtp']), updatedAt: timestamp })),
});

/** What goes on without a user who made it. */
export type NeedsReview = z.output<typeof needsReview>;

/** Whether there is nothing to review. */
export function isEmpty({ serviceClients, webhooks, settings }: NeedsReview): boolean {
  return serviceClients.length + webhooks.length + settings.length === 0;
}
