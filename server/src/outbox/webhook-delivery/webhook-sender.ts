import { type Clock, second } from '../../base/clock.ts';
import type { Secret } from '../../base/secret.ts';
import { addressCheck, isForbiddenHost, type Resolve } from '../../outbound/address-guard.ts';
import type { Message } from '../envelope.ts';
import type { SinkFailure } from '../relay/sink.ts';
import type { Exchanger } from './exchanger.ts';
import { failureOf, reasonOf } from './outcome.ts';
import { signatureHeaders } from './signature.ts';

const exchangeMsMax = 15 * second;

/** Address and secrets of a webhook. */
export interface WebhookTarget {
  /** Of the webhook: messages to one of them go by one connection, one after another. */
  readonly id: string;
  readonly url: string;
  /** One signature for each. */
  readonly secrets: readonly Secret[];
}

/** A message to a webhook. */
interface WebhookMessage extends Message {
  /** Of the event: the same however often it is sent. */
  readonly id: string;
}

/** Outcome of one attempt. */
export interface WebhookAttempt {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly durationMs: number;
  /** Status of the response; `null` without one. */
  readonly status: number | null;
  /** `null`: the message has arrived. */
  readonly failure: SinkFailure | null;
}

/** Sends messages to webhooks. */
export interface WebhookSender {
  /** Sends a message once. Takes at most 15 seconds, and never throws. Rules: EVENT-18, EVENT-24. */
  send(target: WebhookTarget, message: WebhookMessage): Promise<WebhookAttempt>;
  /** Why no message could ever get to an address, as far as that can be seen at once; `null`: it may. Rule: EVENT-24. */
  objectionTo(url: URL): string | null;
  /** Closes the connections of a webhook; messages in flight fail. */
  forget(webhookId: string): Promise<void>;
  /** Closes all connections; messages in flight fail. */
  close(): Promise<void>;
}

interface SenderParts {
  readonly clock: Clock;
  /** Returns allowed networks that are not public: the same array as long as nothing changes. Rule: CONFIG-31. */
  readonly networks: () => readonly string[];
  /** The system's resolver, without it. */
  readonly resolve?: Resolve;
  /** Certificates that are trusted instead of the usual ones, as PEM. */
  readonly ca?: string;
  /** For a whole exchange; 15 seconds. */
  readonly timeoutMs?: number;
}

/** Opens the sender of this process. Nothing is connected before the first message. */
export function openWebhookSender({
  clock,
  networks,
  timeoutMs = exchangeMsMax,
  ...parts
}: SenderParts): WebhookSender {
  const exchangers = new Map<string, Exchanger>();

  /** The connections of a webhook, which end with the address and the networks that they were made for. */
  async function exchangerFor(id: string, origin: string): Promise<Exchanger> {
    // Needed by those alone who have webhooks, and not small.
    const { Exchanger: Made } = await import('./exchanger.ts');
    const present = networks();
    const known = exchangers.get(id);
    const isGood = known?.origin === origin && known.networks === present && !known.isEnded;
    if (isGood) return known;
    if (!known?.isEnded) void known?.retire();
    const made = new Made({ origin, networks: present, timeoutMs, ...parts });
    exchangers.set(id, made);
    return made;
  }

  return {
    async send({ id, url, secrets }, { id: messageId, contentType, body }) {
      const [atMs, begunMs] = [clock.now(), performance.now()];
      const signed = { id: messageId, timestamp: Math.floor(atMs / second), body };
      const headers = { 'content-type': contentType, ...signatureHeaders(signed, secrets) };
      const { origin, pathname, search } = new URL(url);
      const outcome = await exchangerFor(id, origin)
        .then((exchanger) => exchanger.post({ path: pathname + search, headers, body }))
        .then(
          (head) => ({ status: head.status, failure: failureOf(head, clock.now()) }),
          (error: unknown) => ({ status: null, failure: { kind: 'unavailable', reason: reasonOf(error) } as const }),
        );
      return { atMs, durationMs: Math.round(performance.now() - begunMs), ...outcome };
    },

    objectionTo({ protocol, hostname }) {
      const present = networks();
      if (protocol === 'http:' && present.length === 0) return 'must begin with https://';
      const isAllowed = addressCheck(protocol, present);
      if (!isForbiddenHost(hostname, isAllowed)) return null;
      return protocol === 'http:'
        ? 'http:// may only lead to an address in OUTBOUND_NETWORKS'
        : 'must lead to a public address, or one in OUTBOUND_NETWORKS';
    },

    async forget(webhookId) {
      const known = exchangers.get(webhookId);
      exchangers.delete(webhookId);
      await known?.destroy();
    },

    async close() {
      const all = [...exchangers.values()];
      exchangers.clear();
      await Promise.all(all.map((exchanger) => exchanger.destroy()));
    },
  };
}
