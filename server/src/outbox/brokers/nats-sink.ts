import { errors, headers, type MsgHdrs } from '@nats-io/transport-node';
import type { Logger } from 'pino';
import { second } from '../../base/clock.ts';
import type { StreamedEvent, StreamName } from '../envelope.ts';
import type { Delivery, SinkFailure } from '../relay/sink.ts';
import { type BrokerConnection, textOf } from './broker-connection.ts';
import { type BrokerMessage, brokerMessage, type MessageForm } from './broker-message.ts';
import {
  ensureStream,
  hasNoResponders,
  isOutOfTurn,
  isResponse,
  isTooLarge,
  type NatsClient,
  subjectOf,
} from './nats-connection.ts';

/** The maximum number of messages in flight. */
export const natsBatchMax = 256;
const deliveryMsMax = 10 * second;

/** Dependencies of a delivery to JetStream. */
export interface NatsParts {
  readonly connection: BrokerConnection<NatsClient>;
  readonly stream: StreamName;
  readonly log: Logger;
  readonly form: () => MessageForm;
  readonly retentionDays: () => number;
}

/**
 * Outcome of a run: the number of acknowledged messages and the error that stopped it; `null`: none, all are
 * acknowledged.
 */
interface Run {
  readonly acknowledged: number;
  readonly error: unknown;
}

function headersOf({ key, headers: given }: BrokerMessage): MsgHdrs {
  const made = headers();
  for (const [name, value] of Object.entries(given)) made.set(name, value);
  if (key !== '') made.set('Event-Key', key);
  return made;
}

const tooSlow: SinkFailure = { kind: 'unavailable', reason: 'the broker takes too long' };

function failureOf(error: unknown, { stream }: NatsParts): SinkFailure {
  if (hasNoResponders(error))
    return { kind: 'unavailable', reason: `no stream takes the subjects ${stream}.>, or JetStream is off` };
  if (error instanceof errors.TimeoutError) return tooSlow;
  return { kind: isTooLarge(error) ? 'refused' : 'unavailable', reason: textOf(error) };
}

/**
 * Publishes events to a stream of JetStream.
 * Messages are sent without waiting for each other, and each but the first expects the one before it to be the last of
 * the stream. So whatever happens to one, none after it gets ahead. A message that the server knows already counts as
 * arrived whatever it expects, so that a batch may be published again, in part or as a whole. If the server no longer
 * knows some of them, they are stored once more, and the next one may expect a message that is no longer last: then the
 * run continues from there. The same happens when another client publishes to the stream: then fewer messages are sent
 * at once.
 */
export class NatsPublisher {
  readonly #parts: NatsParts;
  #windowSize = natsBatchMax;
  #hasDelivered = false;

  constructor(parts: NatsParts) {
    this.#parts = parts;
  }

  /** Delivers as a sink does. Never throws. */
  async deliver(events: readonly StreamedEvent[]): Promise<Delivery> {
    const form = this.#parts.form();
    const messages = events.map((event) => brokerMessage(event, form));
    const untilMs = performance.now() + deliveryMsMax;
    let [delivered, hasLookedAgain] = [0, false];
    while (delivered < messages.length) {
      if (performance.now() > untilMs) return { delivered, failure: tooSlow };
      const run = await this.#run(messages.slice(delivered, delivered + this.#windowSize));
      delivered += run.acknowledged;
      this.#hasDelivered ||= delivered > 0;
      const isBroken = isOutOfTurn(run.error) && run.acknowledged > 0;
      this.#windowSize = isBroken ? Math.ceil(this.#windowSize / 2) : Math.min(natsBatchMax, this.#windowSize * 2);
      const isMissing = hasNoResponders(run.error) && !hasLookedAgain;
      hasLookedAgain ||= isMissing;
      const isOver = run.error !== null && !isBroken && !isMissing;
      if (isOver) return { delivered, failure: failureOf(run.error, this.#parts) };
    }
    return { delivered, failure: null };
  }

  async #run(messages: readonly BrokerMessage[]): Promise<Run> {
    let link: NatsClient | null = null;
    try {
      link = await this.#parts.connection.take();
      await this.#lookForStream(link);
    } catch (error) {
      if (link) this.#doubt(link, error);
      return { acknowledged: 0, error };
    }
    const run = await this.#publish(link, messages);
    if (run.error !== null) this.#doubt(link, run.error);
    return run;
  }

  /** After a failure it looks for the stream again, and does not reuse a connection that may hang. */
  #doubt(link: NatsClient, error: unknown): void {
    if (isOutOfTurn(error) || isTooLarge(error)) return;
    link.seen.delete(this.#parts.stream);
    if (!isResponse(error)) this.#parts.connection.drop(link);
  }

  async #lookForStream(link: NatsClient): Promise<void> {
    const { stream, retentionDays, log } = this.#parts;
    if (link.seen.has(stream)) return;
    const isMade = await ensureStream(link, stream, retentionDays());
    if (isMade && this.#hasDelivered) log.warn({ stream }, 'the broker has lost a stream: it was created again');
    else if (isMade) log.info({ stream }, 'created a stream at the broker');
    link.seen.add(stream);
  }

  async #publish({ jetstream }: NatsClient, messages: readonly BrokerMessage[]): Promise<Run> {
    const { stream } = this.#parts;
    const sent = messages.map((message, place) => {
      const last = messages[place - 1];
      return jetstream.publish(subjectOf(stream, message.key), message.value, {
        msgID: message.id,
        headers: headersOf(message),
        ...(last === undefined ? {} : { expect: { lastMsgID: last.id } }),
      });
    });
    const ends = await Promise.allSettled(sent);
    const failed = ends.findIndex(({ status }) => status === 'rejected');
    const end = ends[failed];
    return end?.status === 'rejected'
      ? { acknowledged: failed, error: end.reason }
      : { acknowledged: ends.length, error: null };
  }
}
