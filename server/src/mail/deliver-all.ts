import pLimit from 'p-limit';
import type { Mail } from './mail.ts';
import { MailError } from './mail-error.ts';
import type { Mailer } from './mailer.ts';

/** One connection fewer than the pool has: a single mail never waits behind a whole list. */
const atOnceMax = 4;
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

/**
 * Sends many mails, 4 at a time, begun in their order, and never rejects. After `msMax` milliseconds what has not gone
 * out is given up as `late`. When 4 in a row found the server unreachable, the rest is not tried and gets the same error.
 * Rules: INVITE-17, MAIL-7.
 * @returns for each mail, in the same order, `null` when it went out, else why not
 */
export async function deliverAll(
  mailer: Mailer,
  mails: readonly Mail[],
  { msMax }: { readonly msMax: number },
): Promise<readonly (MailError | null)[]> {
  const deadline = new Deadline();
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), msMax);

  async function deliver(mail: Mail): Promise<MailError | null> {
    if (deadline.lost) return deadline.lost;
    if (over.signal.aborted) return new MailError('late', 'There was no time left for this mail.');
    const outcome = await mailer.send(mail, over.signal).then(
      () => null,
      (error: unknown) => (error instanceof MailError ? error : new MailError('unreachable', 'The mailer failed.')),
    );
    deadline.note(outcome);
    return outcome;
  }

  const limit = pLimit(atOnceMax);
  try {
    return await Promise.all(mails.map((mail) => limit(deliver, mail)));
  } finally {
    clearTimeout(timer);
  }
}
