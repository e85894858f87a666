import { createTransport } from 'nodemailer';
import { connectionText } from '../base/connection-error.ts';
import { hiddenReason } from '../outbound/address-guard.ts';
import type { MailServer } from './mail.ts';
import { oneLine } from './mail-layout.ts';
import { guardOf, transportOptions, withoutPassword } from './mailer.ts';

const messageCharsMax = 200;

/**
 * Connects to a mail server, protects the connection and signs in as for a mail, and sends none.
 * @param waitMs how long each of these steps may take
 * @returns why that is impossible, on one line and without the password; `null`: it is possible
 */
export async function checkMailServer(
  server: MailServer,
  { waitMs, ca }: { readonly waitMs: number; readonly ca?: string },
): Promise<string | null> {
  const trusted = ca === undefined ? {} : { tls: { ca } };
  const transport = createTransport({
    ...transportOptions(server, { mailMs: waitMs, guard: guardOf(server, waitMs) }),
    pool: false,
    ...trusted,
  });
  try {
    await transport.verify();
    return null;
  } catch (error) {
    const said = hiddenReason(error) ?? connectionText(error);
    return oneLine(withoutPassword(said, server.login)).trim().slice(0, messageCharsMax);
  } finally {
    transport.close();
  }
}
