import { second } from '../base/clock.ts';
import { ApiError } from '../base/errors.ts';

const retryAfterMs = 5 * second;

/** Returns the error for a backend that cannot be reached, or has too many waiting for it. The cause is for the log. */
export function refuseUnavailable(cause: string, waitMs = retryAfterMs): ApiError {
  const seconds = Math.max(1, Math.ceil(waitMs / second));
  return new ApiError('connectorUnavailable', { cause, headers: { 'retry-after': String(seconds) } });
}

/** Returns the error for a response that is none of those that a connector backend gives. */
export function refuseResponse(cause: string): ApiError {
  return new ApiError('connectorBadAnswer', { cause });
}

/** Returns the error for a backend that is too slow. */
export function refuseTimeout(cause: string): ApiError {
  return new ApiError('connectorTimeout', { cause });
}
