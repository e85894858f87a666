import { z } from 'zod';
import { components, idResponse, timestamp } from '../../http/schemas.ts';

/**
 * Things that stay active without the user who created them and may know their secrets, as returned. Rule: LEAVER-4.
 */
export const needsReview = z.object({
  serviceClients: z.array(z.object({ clientId: idResponse, name: z.string(), createdAt: timestamp })),
  webhooks: z.array(z.object({ id: idResponse, url: z.string(), createdAt: timestamp })),
  settings: z.array(z.object({ name: z.enum(['oidc', 'smtp', 'signInSteps']), updatedAt: timestamp })),
});
components.add(needsReview, { id: 'Review' });

/** Things that stay active without the user who created them. */
export type NeedsReview = z.output<typeof needsReview>;

/** Returns whether there is nothing to review. */
export function isEmpty({ serviceClients, webhooks, settings }: NeedsReview): boolean {
  return serviceClients.length + webhooks.length + settings.length === 0;
}
