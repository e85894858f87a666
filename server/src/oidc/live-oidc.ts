import type { Clock } from '../base/clock.ts';
import type { OidcClient, OidcSettings } from './oidc.ts';

/** Single sign-on as it is configured at the moment. */
export interface LiveOidc {
  /** The client of the present provider; `null` while there is none. */
  client(): Promise<OidcClient | null>;
}

/**
 * Opens single sign-on. What is under way ends with the client that it began with. Rules: AUTH-48, CONFIG-26.
 * @param settings what is configured at the moment: the same object as long as nothing changes
 */
export function liveOidc(settings: () => Promise<OidcSettings | null>, clock: Clock): LiveOidc {
  let present: OidcClient | null = null;
  return {
    client: async () => {
      const wanted = await settings();
      if (wanted === null) {
        present = null;
      } else if (present?.settings !== wanted) {
        const { openOidc } = await import('./open-oidc.ts');
        // Whoever asked at the same time may have been first.
        if (present?.settings !== wanted) present = openOidc(wanted, { clock });
      }
      return present;
    },
  };
}
