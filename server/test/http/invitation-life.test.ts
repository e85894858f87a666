import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Act, type Invitee, lives, Model, verdict } from '../support/invitation-model.ts';
import { Inviting } from '../support/inviting.ts';
import { tokenIn } from '../support/mail-server.ts';
import type { Json, TestResponse } from '../support/test-app.ts';

let it1: Inviting;
let runs = 0;

beforeAll(async () => {
  it1 = await Inviting.start();
});
afterAll(() => it1.close());

/** One life, played on the service and on the model at once. */
class Life {
  readonly model = new Model();
  readonly domain: string;

  constructor() {
    runs += 1;
    this.domain = `life-${runs}.example`;
  }

  get #nowMs(): number {
    return it1.app.clock.now();
  }

  email(invitee: Invitee): string {
    return `${invitee.isMoved ? 'moved-' : ''}${this.model.invitees.indexOf(invitee)}@${this.domain}`;
  }

  async #id(invitee: Invitee): Promise<string> {
    return (await it1.idOf(this.email(invitee))) || 'f'.repeat(24);
  }

  /**
   * Makes the server reject the mail to some users during an action; records the links in the mails that it accepted.
   */
  async #mailing(unreached: readonly Invitee[], act: () => Promise<TestResponse>): Promise<TestResponse> {
    const refused = unreached.map((invitee) => this.email(invitee));
    it1.mail.faults = { refuse: (address) => (refused.includes(address) ? 550 : null) };
    const response = await act();
    it1.mail.faults = {};
    return response;
  }

  /** Gives the links that the model made last their tokens, which came by mail. */
  #collect(): void {
    for (const invitee of this.model.invitees) {
      const link = invitee.invitation?.link;
      if (link && invitee.invitation?.delivery === 'mail' && invitee.invitation.isReached) {
        link.token ??= tokenIn(it1.mailTo(this.email(invitee)));
      }
    }
  }

  /** Does it; answers what was answered and what should have been. */
  async play(act: Act): Promise<readonly [unknown, unknown]> {
    const { model } = this;
    const nowMs = this.#nowMs;
    switch (act.does) {
      case 'invite': {
        const emails = act.whom.map((number) => this.email(model.invitee(number)));
        const unreached = act.unreached.map((number) => model.invitee(number));
        const { status, body } = await this.#mailing(unreached, () => it1.invite(emails));
        const right = model.invite(act.whom, act.unreached, nowMs);
        const failed = right.failed.map((number) => this.email(model.invitee(number)));
        return [
          { status, failed: body.failed ?? [] },
          { status: right.status, failed },
        ];
      }
      case 'resend': {
        const invitee = model.invitee(act.whom);
        const id = await this.#id(invitee);
        const { status } = await this.#mailing(act.isReached ? [] : [invitee], () => it1.resend(id));
        return [status, model.resend(invitee, act.isReached, nowMs)];
      }
      case 'show': {
        const invitee = model.invitee(act.whom);
        const { status, body } = await it1.admin.post(`/users/${await this.#id(invitee)}/invite-link`);
        const right = model.show(invitee, nowMs);
        if (status === 201 && invitee.invitation) invitee.invitation.link.token = body.link.split('#token=')[1];
        return [status, right];
      }
      case 'use': {
        const link = model.known[act.link % Math.max(model.known.length, 1)];
        if (!link) return [0, 0];
        return [(await it1.use(link.token ?? '')).status, model.use(link, nowMs)];
      }
      case 'wait': {
        it1.app.clock.advance(act.ms);
        it1.admin = await it1.app.signIn('ada@example.com');
        return [0, 0];
      }
      default:
        return this.#single(act.does, model.invitee(act.whom));
    }
  }

  async #single(does: 'sign in' | 'move' | 'delete' | 'restore' | 'revoke', invitee: Invitee) {
    const id = await this.#id(invitee);
    const moved = `${invitee.isMoved ? '' : 'moved-'}${this.model.invitees.indexOf(invitee)}@${this.domain}`;
    const send = {
      'sign in': () => it1.app.signInTokens(this.email(invitee)),
      move: () => it1.admin.patch(`/users/${id}/email`, { email: moved }),
      delete: () => it1.admin.delete(`/users/${id}`),
      restore: () => it1.admin.post(`/users/${id}/restore`),
      revoke: () => it1.admin.delete(`/users/${id}/invitation`),
    };
    const { status } = await send[does]();
    return [status, this.model.single(does, invitee, this.#nowMs)] as const;
  }

  /** Returns the observable state: each link, the list, mails. */
  async seen(): Promise<Json> {
    this.#collect();
    const shown = ({ email, status, isReturning, delivery }: Json) => ({ email, status, isReturning, delivery });
    return {
      links: await Promise.all(this.model.known.map(({ token }) => it1.verdict(token ?? ''))),
      list: (await it1.list(`?search=${this.domain}`)).map(shown),
      mails: this.model.invitees.map(
        (_, number) =>
          it1.mail.mails.filter(({ to, subject }) => {
            return subject.startsWith('You are invited') && to[0]?.replace('moved-', '') === `${number}@${this.domain}`;
          }).length,
      ),
    };
  }

  /** The same as the rules have it. */
  expected(): Json {
    const nowMs = this.#nowMs;
    const { model } = this;
    const list = model.order.flatMap((invitee) => {
      if (!invitee.invitation) return [];
      const { isReturning, delivery } = invitee.invitation;
      return [{ email: this.email(invitee), status: invitee.status(nowMs), isReturning, delivery }];
    });
    return {
      links: model.known.map((link) => verdict(link, nowMs)),
      list,
      mails: model.invitees.map(({ mails }) => mails),
    };
  }
}

describe('the life of invitations', () => {
  it('is as the rules have it: every answer, every link that was ever issued, the list and its counts, the mails (INVITE-6, INVITE-7, INVITE-12 to INVITE-15, INVITE-18 to INVITE-20, INVITE-22 to INVITE-26, LINK-2, LINK-3)', async () => {
    const property = fc.asyncProperty(lives, async (acts) => {
      const life = new Life();
      for (const [place, act] of acts.entries()) {
        const [response, right] = await life.play(act);
        const where = `act ${place}: ${JSON.stringify(act)}`;
        expect({ where, answer: response, ...(await life.seen()) }).toEqual({
          where,
          answer: right,
          ...life.expected(),
        });
      }
      for (const status of ['pending', 'accepted', 'expired', 'failed']) {
        const { body } = await it1.admin.get(`/users/invitations?search=${life.domain}&status=${status}`);
        const wanted = life.expected().list.filter((one: Json) => one.status === status).length;
        expect([status, body.pagination.totalCount, body.invitations.length]).toEqual([status, wanted, wanted]);
      }
      const told = (await it1.app.events()).filter(({ payload }) => payload.email?.endsWith(life.domain));
      expect(told).toHaveLength(life.model.invitees.reduce((sum, { events }) => sum + events, 0));
    });
    await fc.assert(property, { numRuns: 12 });
  }, 120_000);
});
