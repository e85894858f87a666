import { type Envelope, type EventsFormat, type StreamedEvent, toMessage } from '../envelope.ts';
import type { Delivery, Sink, SinkFailure } from '../relay/sink.ts';
import type { WebhookAttempt, WebhookSender, WebhookTarget } from './webhook-sender.ts';

interface WebhookSinkParts {
  readonly sender: WebhookSender;
  /** Of the webhook. */
  readonly id: string;
  /** Returns the present address and secrets; `null` where nothing is to be sent any more. */
  readonly target: () => Promise<WebhookTarget | null>;
  /** Called for each attempt. */
  readonly record: (event: Envelope, attempt: WebhookAttempt) => Promise<void>;
  /** Returns the present format of messages. Rules: EVENT-21, CONFIG-30. */
  readonly form: () => { readonly format: EventsFormat; readonly source: string };
  /** Called for unexpected errors. */
  readonly onFault: (error: unknown) => void;
}

const ended: SinkFailure = { kind: 'unavailable', reason: 'the webhook is off, or deleted' };
const fault: SinkFailure = { kind: 'unavailable', reason: 'a fault of this service: see its log' };

/** A webhook as something that events are relayed to: one message an event, one at a time. Rules: EVENT-18, EVENT-23. */
export function webhookSink({ sender, id, target, record, form, onFault }: WebhookSinkParts): Sink {
  async function deliverOne(event: StreamedEvent): Promise<SinkFailure | null> {
    try {
      const present = await target();
      if (!present) return ended;
      const attempt = await sender.send(present, { id: event.envelope.id, ...toMessage(event, form()) });
      // What has arrived has arrived, whether or not that could be written down.
      await record(event.envelope, attempt).catch(onFault);
      return attempt.failure;
    } catch (error) {
      onFault(error);
      return fault;
    }
  }

  return {
    batchMax: 1,
    async deliver(events): Promise<Delivery> {
      for (const [delivered, event] of events.entries()) {
        const failure = await deliverOne(event);
        if (failure) return { delivered, failure };
      }
      return { delivered: events.length, failure: null };
    },
    close: () => sender.forget(id),
  };
}
