import type { Clock } from '../base/clock.ts';
import type { OidcClient, OidcSettings } from './oidc.ts';

/** Single sign-on with the present settings. */
export interface LiveOidc {
  /** The client of the present provider; `null` while there is none. */
  client(): Promise<OidcClient | null>;
  /** Opens a client with settings that are not the present ones, to check them. */
  open(settings: OidcSettings): Promise<OidcClient>;
}

/**
 * Opens single sign-on. Running requests end with the client that they began with. Rules: AUTH-48, CONFIG-26.
 * @param settings returns the present settings: the same object as long as nothing changes
 */
export function liveOidc(settings: () => Promise<OidcSettings | null>, clock: Clock): LiveOidc {
  let present: OidcClient | null = null;
  const open = async (wanted: OidcSettings) => {
    const { openOidc } = await import('./open-oidc.ts');
    return openOidc(wanted, { clock });
  };
  return {
    open,
    client: async () => {
      const wanted = await settings();
      if (wanted === null) {
        present = null;
      } else if (present?.settings !== wanted) {
        const opened = await open(wanted);
        // A concurrent call may have been first.
        if (present?.settings !== wanted) present = opened;
      }
      return present;
    },
  };
}
