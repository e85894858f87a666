import type { Logger } from 'pino';
import type { AfterResponse } from '../base/after-response.ts';
import { type Clock, second } from '../base/clock.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { deliverAll } from './deliver-all.ts';
import { laterMails } from './later-mails.ts';
import type { Mail, MailSettings } from './mail.ts';
import { type MailClient, usualClient } from './mail-client.ts';
import type { MailError } from './mail-error.ts';
import { type MailPauses, usualPauses } from './mail-pauses.ts';
import type { Mailer } from './mailer.ts';
import { repeatDeferred } from './repeat-mail.ts';

const mailMsMax = 10 * second;

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
   * Sends a mail that a request waits for, for 10 seconds at most; again where the server refuses it for the time being.
   * Returns the server's response; `null` without mail. Throws MailError. Rule: FIT-22.
   */
  send(mail: Mail): Promise<string | null>;
  /**
   * Sends mails that a request waits for; again where the server refuses them for the time being. Returns for each, in the
   * same order, `null` when it went out, else why not; `null` in place of all without mail. Rules: FIT-22, INVITE-17.
   */
  sendAll(mails: readonly Mail[], limits: { readonly msMax: number }): Promise<readonly (MailError | null)[] | null>;
  /**
   * Sends a mail behind the request that caused it, once the change is committed, and again for ten minutes while the server
   * refuses it for the time being or cannot be reached. No response depends on the outcome: a failure is logged and
   * counted. Rules: FIT-23, MAIL-2, MAIL-6.
   * @param what the kind of mail, in few words, for the log
   */
  sendLater(what: string, mail: Mail): void;
  /** Aborts mails in flight, and gives up those that wait. */
  close(): Promise<void>;
}

interface MailParts {
  readonly clock: Clock;
  readonly afterResponse: AfterResponse;
  readonly metrics: Pick<Metrics, 'countUpstreamFault'>;
  readonly log: Logger;
  /** Returns the present settings: the same object as long as nothing changes. */
  readonly settings: () => Promise<MailSettings | null>;
  /** Returns how the service appears to mail servers; it changes with the settings only. */
  readonly client?: () => MailClient;
  readonly pauses?: MailPauses;
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
export function openMailService(parts: MailParts): MailService {
  const { clock, settings, client = () => usualClient, pauses = usualPauses } = parts;
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
      present =
        wanted && new Lease(wanted, openMailer(wanted, { clock, client: client() }), (lease) => open.delete(lease));
      if (present) open.add(present);
      void earlier?.replace();
    }
    return present ? present.use(work) : null;
  }

  async function send(mail: Mail): Promise<string | null> {
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), mailMsMax);
    const attempt = () => use((mailer) => mailer.send(mail, over.signal));
    try {
      return await repeatDeferred(attempt, { pausesMs: pauses.waited, signal: over.signal });
    } finally {
      clearTimeout(timer);
    }
  }

  const later = laterMails({
    ...parts,
    pausesMs: pauses.background,
    send: (mail) => use((mailer) => mailer.send(mail)),
  });

  return {
    settings,
    use,
    send,
    sendAll: (mails, { msMax }) => use((mailer) => deliverAll(mailer, mails, { msMax, pausesMs: pauses.waited })),
    sendLater: later.add,
    close: async () => {
      later.close();
      present = null;
      await Promise.all([...open].map((lease) => lease.close()));
    },
  };
}
