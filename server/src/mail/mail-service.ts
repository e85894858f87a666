import type { Logger } from 'pino';
import type { AfterResponse } from '../base/after-response.ts';
import type { Clock } from '../base/clock.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Mail, MailSettings } from './mail.ts';
import { MailError } from './mail-error.ts';
import type { Mailer } from './mailer.ts';

/** Mail of this service, over the server that is configured at the time. */
export interface MailService {
  /** Returns the present settings; `null` while mail is not configured. Rule: MAIL-1. */
  settings(): Promise<MailSettings | null>;
  /**
   * Runs work with the mailer of the present settings, which stays open until the work is done, whatever is configured
   * meanwhile; `null` without mail. Rule: MAIL-9.
   */
  use<T>(work: (mailer: Mailer) => Promise<T>): Promise<T | null>;
  /**
   * Sends a mail behind the request that caused it, once the change is committed. No response depends on the outcome: a
   * failure is logged and counted. Rules: MAIL-2, MAIL-6.
   * @param what the kind of mail, in few words, for the log
   */
  sendLater(what: string, mail: Mail): void;
  /** Aborts mails in flight. */
  close(): Promise<void>;
}

interface MailParts {
  readonly clock: Clock;
  readonly afterResponse: AfterResponse;
  readonly metrics: Pick<Metrics, 'countUpstreamFault'>;
  readonly log: Logger;
  /** Returns the present settings: the same object as long as nothing changes. */
  readonly settings: () => Promise<MailSettings | null>;
}

/** A mailer, closed when it is no longer used and other settings hold. */
class Lease {
  readonly settings: MailSettings;
  readonly #mailer: Mailer;
  readonly #onClose: (lease: Lease) => void;
  #users = 0;
  #isReplaced = false;

  constructor(settings: MailSettings, mailer: Mailer, onClose: (lease: Lease) => void) {
    this.settings = settings;
    this.#mailer = mailer;
    this.#onClose = onClose;
  }

  async use<T>(work: (mailer: Mailer) => Promise<T>): Promise<T> {
    this.#users += 1;
    try {
      return await work(this.#mailer);
    } finally {
      this.#users -= 1;
      if (this.#isReplaced && this.#users === 0) await this.close();
    }
  }

  /** Closes it as soon as it is not used any more. */
  async replace(): Promise<void> {
    this.#isReplaced = true;
    if (this.#users === 0) await this.close();
  }

  async close(): Promise<void> {
    this.#onClose(this);
    await this.#mailer.close();
  }
}

/** Opens the mail of this process. Nothing is connected before the first mail. Rules: MAIL-1, MAIL-9. */
export function openMailService({ clock, afterResponse, metrics, log, settings }: MailParts): MailService {
  let present: Lease | null = null;
  /** The present one, and those that something is still being sent with. */
  const open = new Set<Lease>();

  async function use<T>(work: (mailer: Mailer) => Promise<T>): Promise<T | null> {
    // From the first mail on.
    const { openMailer } = await import('./mailer.ts');
    const wanted = await settings();
    // No wait from here to the use of the lease: nothing can replace it in between.
    const earlier = present;
    if (earlier?.settings !== (wanted ?? undefined)) {
      present = wanted && new Lease(wanted, openMailer(wanted, { clock }), (lease) => open.delete(lease));
      if (present) open.add(present);
      void earlier?.replace();
    }
    return present ? present.use(work) : null;
  }

  async function sendOrNote(what: string, mail: Mail): Promise<void> {
    try {
      const said = await use((mailer) => mailer.send(mail));
      if (said === null) log.info({ what }, 'mail not sent: mail is not configured');
    } catch (error) {
      if (!(error instanceof MailError)) throw error;
      metrics.countUpstreamFault('mailFailed');
      log.warn({ what, kind: error.kind, cause: error.reason }, 'a mail did not go out');
    }
  }

  return {
    settings,
    use,
    sendLater: (what, mail) => afterResponse.run(what, () => sendOrNote(what, mail)),
    close: async () => {
      present = null;
      await Promise.all([...open].map((lease) => lease.close()));
    },
  };
}
