import type { Logger } from 'pino';
import type { AfterResponse } from '../base/after-response.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Mail } from './mail.ts';
import { MailError } from './mail-error.ts';

/** Of the mails that wait for a further attempt, in memory only. */
const waitingMax = 1_000;

interface LaterParts {
  readonly afterResponse: AfterResponse;
  readonly metrics: Pick<Metrics, 'countUpstreamFault'>;
  readonly log: Logger;
  /** Milliseconds before each further attempt. */
  readonly pausesMs: readonly number[];
  /** Sends a mail once; `null` without mail. */
  readonly send: (mail: Mail) => Promise<string | null>;
}

/** Mails that no request waits for. */
export interface LaterMails {
  /** Sends a mail after the response, and again while its server refuses for the time being or cannot be reached. */
  add(what: string, mail: Mail): void;
  /** Gives up what waits for a further attempt. */
  close(): void;
}

/** A mail that waits for a further attempt. */
interface Waiting {
  readonly what: string;
  readonly error: MailError;
}

/**
 * Sends mails behind requests. A failure is logged and counted once it is final. What waits is in memory only, since links
 * and codes are stored nowhere: a process that stops gives it up, and logs that. Rules: FIT-23, MAIL-2.
 */
export function laterMails({ afterResponse, metrics, log, pausesMs, send }: LaterParts): LaterMails {
  const waiting = new Map<NodeJS.Timeout, Waiting>();
  let isClosed = false;

  function giveUp({ what, error }: Waiting): void {
    metrics.countUpstreamFault('mailFailed');
    const { kind, reason: cause, hint } = error;
    log.warn({ what, kind, cause, ...(hint === null ? {} : { hint }) }, 'a mail did not go out');
  }

  function failed(what: string, mail: Mail, { attempts, error }: { attempts: number; error: MailError }): void {
    const pauseMs = pausesMs[attempts];
    const isOver = isClosed || pauseMs === undefined || waiting.size >= waitingMax || !error.isRepeatable;
    if (isOver) giveUp({ what, error });
    else wait({ what, mail, error, attempts, pauseMs });
  }

  function run(what: string, mail: Mail, attempts: number): void {
    const work = async () => {
      try {
        const response = await send(mail);
        if (response === null) log.info({ what }, 'mail not sent: mail is not configured');
        else if (attempts > 0) log.info({ what, attempts: attempts + 1 }, 'a mail went out after further attempts');
      } catch (error) {
        if (!(error instanceof MailError)) throw error;
        failed(what, mail, { attempts, error });
      }
    };
    afterResponse.run(what, work, { queue: 'mail' });
  }

  function wait(given: Waiting & { readonly mail: Mail; readonly attempts: number; readonly pauseMs: number }): void {
    const { what, mail, error, attempts, pauseMs } = given;
    const { kind, reason: cause, hint } = error;
    const more = hint === null ? {} : { hint };
    if (attempts === 0)
      log.warn({ what, kind, cause, ...more }, 'a mail waits: its server does not take it at present');
    const timer = setTimeout(() => {
      waiting.delete(timer);
      run(what, mail, attempts + 1);
    }, pauseMs);
    waiting.set(timer, { what, error });
  }

  return {
    add: (what, mail) => run(what, mail, 0),
    close: () => {
      isClosed = true;
      for (const [timer, given] of waiting) {
        clearTimeout(timer);
        giveUp(given);
      }
      waiting.clear();
    },
  };
}
