import type { Reader } from '../db/database.ts';
import type { MailTarget } from '../db/members/mail-targets.ts';
import { selectActiveOrganization } from '../db/members/organization.ts';
import type { Services } from '../services.ts';
import type { MailContent } from './mail.ts';
import type { NoticeReader } from './notice-emails.ts';

/** Kind of a notice. Each is limited separately, so that many of one kind cannot hide one of another. */
type NoticeKind =
  | 'password changed'
  | 'token created'
  | 'sign-in steps changed'
  | 'sessions ended'
  | 'session reused'
  | 'single sign-on unlinked';

/** A notice, and the active users whom it is for. */
interface Notice {
  readonly to: (read: Reader) => Promise<MailTarget | undefined | readonly MailTarget[]>;
  readonly email: (reader: NoticeReader) => MailContent;
}

/**
 * Mails a notice to users about their accounts, after the response. Nothing waits for it, and nothing fails with it; without
 * mail nothing is done. To be called once the change is committed. Rule: SESSION-11.
 */
export function sendNotice(
  { db, mail, afterResponse, limits }: Pick<Services, 'db' | 'mail' | 'afterResponse' | 'limits'>,
  kind: NoticeKind,
  { to, email }: Notice,
): void {
  const what = `notice: ${kind}`;
  afterResponse.run(what, async () => {
    if (!(await mail.settings())) return;
    const organization = (await selectActiveOrganization(db.read))?.name;
    const found = (await to(db.read)) ?? [];
    if (organization === undefined) return;
    for (const { id, fullName, mailTo } of 'id' in found ? [found] : found) {
      if (!(await limits.tryCount('notice', `${kind} ${id}`))) continue;
      mail.sendLater(what, { to: mailTo, ...email({ organization, fullName }) });
    }
  });
}
