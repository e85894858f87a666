import { createHmac, randomBytes } from 'node:crypto';
import { Secret } from '../../base/secret.ts';

const prefix = 'whsec_';

/** A secret that messages are signed with, of 256 random bits, in the form of Standard Webhooks. Rule: EVENT-25. */
export function createRawWebhookSecret(): Secret {
  return new Secret(prefix + randomBytes(32).toString('base64'));
}

/** Signed parts of a message. */
interface SignedParts {
  /** The same however often the message is sent. Holds no full stop. */
  readonly id: string;
  /** Of this attempt, in seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

function sign({ id, timestamp, body }: SignedParts, secret: Secret): string {
  const key = Buffer.from(secret.expose().slice(prefix.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

/** The headers by which a receiver knows a message for ours, one signature for each secret. Rules: EVENT-18, EVENT-25. */
export function signatureHeaders(parts: SignedParts, secrets: readonly Secret[]): Record<string, string> {
  return {
    'webhook-id': parts.id,
    'webhook-timestamp': String(parts.timestamp),
    'webhook-signature': secrets.map((secret) => sign(parts, secret)).join(' '),
  };
}
