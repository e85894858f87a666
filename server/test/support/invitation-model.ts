import fc from 'fast-check';

/** Number of users in a life. */
const inviteeCount = 3;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Something that happens to invitations. */
export type Act =
  | { readonly does: 'invite'; readonly whom: readonly number[]; readonly unreached: readonly number[] }
  | { readonly does: 'resend'; readonly whom: number; readonly isReached: boolean }
  | { readonly does: 'show' | 'sign in' | 'move' | 'delete' | 'restore' | 'revoke'; readonly whom: number }
  | { readonly does: 'use'; readonly link: number }
  | { readonly does: 'wait'; readonly ms: number };

const whom = fc.nat({ max: inviteeCount - 1 });
const some = fc.shuffledSubarray(Array.from({ length: inviteeCount }, (_, number) => number));
const simple = fc.constantFrom('show', 'sign in', 'move', 'delete', 'restore', 'revoke');
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('invite' as const),
      whom: some.filter(({ length }) => length > 0),
      unreached: fc.oneof(fc.constant([]), some),
    }),
  },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('resend' as const), whom, isReached: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ does: simple, whom }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('use' as const), link: fc.nat() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant('wait' as const),
      ms: fc.constantFrom(minute, 90_000, 47 * hour, 48 * hour, 31 * day, -minute),
    }),
  },
);

/** A life of invitations: what happens, one after the other. */
export const lives = fc.array(act, { minLength: 6, maxLength: 18 });

interface IssuedLink {
  readonly owner: Invitee;
  /** `null`: the mail with it did not go out. */
  token: string | null;
  readonly expiresMs: number;
  endedMs: number | null;
}

interface Invitation {
  readonly link: IssuedLink;
  readonly delivery: 'mail' | 'link';
  readonly isReached: boolean;
  readonly isReturning: boolean;
}

/** A user, as the rules have it. */
export class Invitee {
  state: 'unknown' | 'active' | 'deleted' = 'unknown';
  isMoved = false;
  hasPassword = false;
  hasSignedIn = false;
  /** The last one in this life of the account. */
  invitation: Invitation | null = null;
  /** Number of invitation mails that were sent. */
  mails = 0;
  events = 0;
  readonly links: IssuedLink[] = [];

  end(nowMs: number): void {
    for (const link of this.links) link.endedMs ??= nowMs;
  }

  remove(nowMs: number): void {
    this.end(nowMs);
    Object.assign(this, { state: 'deleted', hasPassword: false, hasSignedIn: false, invitation: null });
    this.events += 1;
  }

  comeIn(): void {
    this.state = 'active';
    this.events += 1;
  }

  issue(nowMs: number, how: Omit<Invitation, 'link'>): IssuedLink {
    this.end(nowMs);
    const link: IssuedLink = { owner: this, token: null, expiresMs: nowMs + 48 * hour, endedMs: null };
    this.links.push(link);
    this.invitation = { ...how, link };
    if (how.delivery === 'mail' && how.isReached) this.mails += 1;
    return link;
  }

  get isAccepted(): boolean {
    return this.hasPassword || this.hasSignedIn;
  }

  /** Returns the status of the invitation in the list. Rule: INVITE-24. */
  status(nowMs: number): string {
    if (this.isAccepted) return 'accepted';
    const { invitation } = this;
    if (invitation && !invitation.isReached) return 'failed';
    return invitation && verdict(invitation.link, nowMs) === 400 ? 'pending' : 'expired';
  }
}

/** The status of a use of a link with a password that is too short: 400 where the link still works. Rules: INVITE-12, LINK-3. */
export function verdict({ owner, expiresMs, endedMs }: IssuedLink, nowMs: number): number {
  if (owner.state !== 'active') return 401;
  const endMs = Math.min(expiresMs, endedMs ?? expiresMs);
  if (endedMs === null && nowMs < endMs) return 400;
  return nowMs < endMs + 30 * day ? 410 : 401;
}

/** All users and links, as the rules have them. */
export class Model {
  readonly invitees = Array.from({ length: inviteeCount }, () => new Invitee());
  /** Every link that went out, in order. */
  readonly known: IssuedLink[] = [];
  /** Users with a current invitation, the last one first. */
  order: Invitee[] = [];

  invitee(number: number): Invitee {
    const invitee = this.invitees[number];
    if (!invitee) throw new Error('nobody has this number');
    return invitee;
  }

  #issue(invitee: Invitee, nowMs: number, how: Omit<Invitation, 'link'>): void {
    const link = invitee.issue(nowMs, how);
    if (how.isReached) this.known.push(link);
    this.order = [invitee, ...this.order.filter((other) => other !== invitee)];
  }

  /** Invites; answers the status, and whom the mail does not reach. Rules: INVITE-6 to INVITE-15. */
  invite(whom: readonly number[], unreached: readonly number[], nowMs: number) {
    const failed: number[] = [];
    const invited = [
      ...whom.filter((number) => this.invitee(number).state === 'unknown'),
      ...whom.filter((number) => this.invitee(number).state === 'deleted'),
      ...whom.filter(
        (number) => this.invitee(number).state === 'active' && this.invitee(number).status(nowMs) === 'failed',
      ),
    ];
    for (const number of invited) {
      const invitee = this.invitee(number);
      const isReturning =
        invitee.state === 'active' ? invitee.invitation?.isReturning === true : invitee.state === 'deleted';
      if (invitee.state !== 'active') invitee.comeIn();
      const isReached = !unreached.includes(number);
      if (!isReached) failed.push(number);
      this.#issue(invitee, nowMs, { delivery: 'mail', isReached, isReturning });
    }
    const done = failed.length > 0 ? 502 : 200;
    return { status: invited.length === 0 ? 409 : done, failed };
  }

  resend(invitee: Invitee, isReached: boolean, nowMs: number): number {
    if (invitee.state !== 'active') return 404;
    if (invitee.hasSignedIn) return 400;
    const isReturning = invitee.invitation?.isReturning === true;
    this.#issue(invitee, nowMs, { delivery: 'mail', isReached, isReturning });
    return isReached ? 200 : 502;
  }

  show(invitee: Invitee, nowMs: number): number {
    if (invitee.state !== 'active') return 404;
    if (invitee.isAccepted) return 400;
    const isReturning = invitee.invitation?.isReturning === true;
    this.#issue(invitee, nowMs, { delivery: 'link', isReached: true, isReturning });
    return 201;
  }

  use(link: IssuedLink, nowMs: number): number {
    const status = verdict(link, nowMs);
    if (status !== 400) return status;
    link.owner.end(nowMs);
    link.owner.hasPassword = true;
    return 200;
  }

  /** Applies an action to one user; returns the status. */
  single(does: 'sign in' | 'move' | 'delete' | 'restore' | 'revoke', invitee: Invitee, nowMs: number): number {
    if (does === 'restore') {
      if (invitee.state !== 'deleted') return invitee.state === 'active' ? 409 : 404;
      invitee.comeIn();
      return 200;
    }
    if (does === 'sign in') {
      if (!invitee.hasPassword) return 401;
      invitee.hasSignedIn = true;
      return 200;
    }
    if (invitee.state !== 'active') return 404;
    if (does === 'move') {
      invitee.end(nowMs);
      invitee.isMoved = !invitee.isMoved;
      invitee.events += 1;
      return 200;
    }
    if (does === 'revoke' && !invitee.invitation) return 404;
    if (does === 'revoke' && invitee.isAccepted) return 400;
    invitee.remove(nowMs);
    return 200;
  }
}
