import pLimit from 'p-limit';
import type { Mail } from './mail.ts';
import { MailError } from './mail-error.ts';
import { paused, usualPauses } from './mail-pauses.ts';
import type { Mailer } from './mailer.ts';

const unreachableMax = 4;

/**
 * Decides when to stop trying a server: after several mails in a row found it unreachable, with no response in between.
 */
class Deadline {
  #inRow = 0;
  #last: MailError | null = null;

  note(outcome: MailError | null): void {
    if (outcome?.kind === 'unreachable') {
      this.#inRow += 1;
      this.#last = outcome;
    } else if (outcome === null || outcome.kind === 'refused') {
      this.#inRow = 0;
    }
  }

  /** Why the rest is not tried; `null` while it is. */
  get lost(): MailError | null {
    return this.#inRow >= unreachableMax ? this.#last : null;
  }
}

type Outcome = MailError | null;

const noTime = () => new MailError('late', 'There was no time left for this mail.');

/** Sends each mail once. */
async function deliverOnce(mailer: Mailer, mails: readonly Mail[], over: AbortSignal): Promise<readonly Outcome[]> {
  const deadline = new Deadline();
  // After a failure one connection is left for single mails, where there are several, until the server takes a mail again.
  const careful = Math.max(1, mailer.connections - 1);
  const limit = pLimit(mailer.connections);

  async function deliver(mail: Mail): Promise<Outcome> {
    if (deadline.lost) return deadline.lost;
    if (over.aborted) return noTime();
    const outcome = await mailer.send(mail, over).then(
      () => null,
      (error: unknown) => (error instanceof MailError ? error : new MailError('unreachable', 'The mailer failed.')),
    );
    deadline.note(outcome);
    const isFailing = outcome?.kind === 'late' || outcome?.kind === 'unreachable';
    limit.concurrency = isFailing ? careful : mailer.connections;
    return outcome;
  }

  return Promise.all(mails.map((mail) => limit(deliver, mail)));
}

/**
 * Sends many mails over all connections, begun in their order, and never rejects. What the server refuses for the time
 * being is sent again after each pause. After `msMax` milliseconds what has not gone out is given up: as `late`, or with
 * the last refusal. When 4 in a row found the server unreachable, the rest is not tried and gets the same error. Rules:
 * FIT-21, FIT-22, INVITE-17, MAIL-7.
 * @returns for each mail, in the same order, `null` when it went out, else why not
 */
export async function deliverAll(
  mailer: Mailer,
  mails: readonly Mail[],
  { msMax, pausesMs = usualPauses.waited }: { readonly msMax: number; readonly pausesMs?: readonly number[] },
): Promise<readonly Outcome[]> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), msMax);
  try {
    const outcomes = [...(await deliverOnce(mailer, mails, over.signal))];
    for (const pauseMs of pausesMs) {
      const due = [...outcomes.keys()].filter((place) => outcomes[place]?.isDeferred);
      const isDue = new Set(due);
      if (due.length === 0 || !(await paused(pauseMs, over.signal))) break;
      const again = await deliverOnce(
        mailer,
        mails.filter((_, place) => isDue.has(place)),
        over.signal,
      );
      // That the time was over explains less than the refusal.
      const news = due.flatMap((place, index) =>
        again[index]?.kind === 'late' ? [] : [[place, again[index] ?? null] as const],
      );
      for (const [place, outcome] of news) outcomes[place] = outcome;
    }
    return outcomes;
  } finally {
    clearTimeout(timer);
  }
}
