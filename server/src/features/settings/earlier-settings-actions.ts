import { z } from 'zod';
import { components } from '../../http/schemas.ts';
import { mailSettingsResponse } from './public.ts';

/** The mail settings as earlier clients read them, and as they are. Rule: FIT-79. */
export const earlierMailSettingsResponse = mailSettingsResponse.extend({
  fromEmail: z.string().nullable().describe('The same as from'),
});
components.add(earlierMailSettingsResponse, { id: 'EarlierMailSettings' });

/** Returns mail settings in the form of earlier clients. The password is in neither. */
export function toEarlierMailSettings(
  settings: z.output<typeof mailSettingsResponse>,
): z.output<typeof earlierMailSettingsResponse> {
  return { ...settings, fromEmail: settings.from };
}
