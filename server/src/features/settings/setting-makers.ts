import { z } from 'zod';
import { toTimestamp } from '../../base/clock.ts';
import { idResponse, timestamp } from '../../http/schemas.ts';

/** Who answers for stored settings, as it goes out. Rule: LEAVER-10. */
export const makersAnswer = z.object({
  updatedBy: idResponse.nullable().describe('Who stored the settings; null: none are stored'),
  updatedAt: timestamp.nullable(),
  confirmedBy: idResponse.nullable().describe('The administrator who confirmed them since; null: none'),
  needsReview: z
    .boolean()
    .describe('Whether who confirmed them, or else who set them or gave their secret, is no administrator any more'),
});

/** Who answers for stored settings, as the store has it. */
interface StoredMakers {
  readonly updatedBy: string;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  readonly confirmedBy: string | null;
  readonly areMakersAdministrators: 0 | 1;
}

/**
 * Who answers for settings, as it goes out. Rule: LEAVER-10.
 * @param stored `undefined`: none are stored
 */
export function toMakers(stored: StoredMakers | undefined): z.output<typeof makersAnswer> {
  if (!stored) return { updatedBy: null, updatedAt: null, confirmedBy: null, needsReview: false };
  const { updatedBy, updatedAt, confirmedBy, areMakersAdministrators } = stored;
  return { updatedBy, updatedAt: toTimestamp(updatedAt), confirmedBy, needsReview: areMakersAdministrators === 0 };
}
