import { createTransport } from 'nodemailer';
import { systemClock } from '../base/clock.ts';
import { connectionText } from '../base/connection-error.ts';
import { hiddenReason } from '../outbound/address-guard.ts';
import { openAccessTokens } from './access-tokens.ts';
import type { MailSettings } from './mail.ts';
import { type MailClient, usualClient } from './mail-client.ts';
import { mailHint } from './mail-hints.ts';
import { messageWithoutSecrets } from './mail-secrets.ts';
import { guardOf, transportOptions } from './mail-transport.ts';

interface CheckParts {
  /** How long each step may take. */
  readonly waitMs: number;
  readonly client?: MailClient;
  readonly ca?: string;
}

/**
 * Connects to a mail server, protects the connection and signs in as for a mail, and sends none.
 * @returns why that is impossible, on one line and without secrets; `null`: it is possible
 */
export async function checkMailServer(
  settings: MailSettings,
  { waitMs, client = usualClient, ca }: CheckParts,
): Promise<string | null> {
  const { oauth2, outboundNetworks: networks } = settings;
  const tokens = oauth2 ? openAccessTokens(oauth2, { clock: systemClock, msMax: waitMs, networks }) : null;
  const transport = createTransport({
    ...transportOptions(settings, { mailMs: waitMs, guard: guardOf(settings, waitMs), client, tokens, ca }),
    pool: false,
  });
  try {
    await transport.verify();
    return null;
  } catch (error) {
    const shown = messageWithoutSecrets(
      hiddenReason(error) ?? connectionText(error),
      settings,
      tokens?.present() ?? null,
    );
    const hint = mailHint(shown, { settings, client });
    return hint === null ? shown : `${shown} ${hint}`;
  } finally {
    transport.close();
  }
}
