import type { IncomingMessage, ServerResponse } from 'node:http';

/** Requests whose sender waits for a sign before it sends the body (`Expect: 100-continue`). */
const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/** Notes that the sender of a request waits before it sends the body. */
export function expectContinue(message: IncomingMessage, response: ServerResponse): void {
  waiting.set(message, response);
}

/** Has the sender of a request send the body, where it waits: a request that is refused needs none. Rule: FIT-45. */
export function askForBody(message: IncomingMessage): void {
  waiting.get(message)?.writeContinue();
  waiting.delete(message);
}
