import { isUtf8 } from 'node:buffer';
import { ApiError, type ApiErrorName } from '../base/errors.ts';
import { PassedResponse } from '../http/endpoint.ts';
import type { ConnectorResponse } from './connector.ts';
import { refuseResponse } from './connector-errors.ts';

/** Statuses for wrong requests, as our own errors. */
const passedErrors: Readonly<Record<number, ApiErrorName>> = {
  400: 'connectorRefused',
  403: 'connectorForbidden',
  404: 'notFound',
  409: 'connectorConflict',
};

const levelsMax = 100;
const valuesMax = 200_000;
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const brackets: readonly [string, number][] = [
  ['[{', 1],
  [']}', -1],
];
/** Change of the nesting level by each byte, outside of text. */
const levelSteps = new Int8Array(256);
for (const [characters, step] of brackets) for (const byte of Buffer.from(characters)) levelSteps[byte] = step;

/** The place of the quotation mark that ends a text. */
function endOfText(body: Buffer, start: number): number {
  let place = start;
  while (place < body.length && body[place] !== quote) place += body[place] === backslash ? 2 : 1;
  return place;
}

/**
 * Returns whether parsing would block the process for seconds, as 10 MB of nothing but brackets do. No expected list is
 * nested like that, or has so many values.
 */
function isTooIntricate(body: Buffer): boolean {
  let level = 0;
  let values = 0;
  for (let place = 0; place < body.length; place += 1) {
    const byte = body[place] ?? 0;
    if (byte === quote) place = endOfText(body, place + 1);
    else if (byte === comma) values += 1;
    else {
      const step = levelSteps[byte] ?? 0;
      level += step;
      if (step > 0) values += 1;
    }
    if (level > levelsMax || values > valuesMax) return true;
  }
  return false;
}

/** Checked by content, whatever type the backend declares (RFC 8259, section 8.1: UTF-8, no byte order mark). */
function isJson(body: Buffer): boolean {
  if (!isUtf8(body) || isTooIntricate(body)) return false;
  try {
    JSON.parse(body.toString());
    return true;
  } catch {
    return false;
  }
}

/**
 * Converts the backend's response to a list into ours. Throws `failed` for any status but 200, and `connectorBadAnswer`
 * (502) for a 200 that is not JSON. Rules: TEAM-9 to TEAM-11.
 */
export function passList(
  { status, body }: ConnectorResponse,
  failed: 'connectorUsersFailed' | 'connectorTeamsFailed',
): PassedResponse {
  if (status !== 200) throw new ApiError(failed, { cause: `it answered ${status}` });
  if (!isJson(body)) throw refuseResponse('its response is not JSON');
  return new PassedResponse(status, body);
}

/**
 * Converts the backend's response to an operation on one team into ours: any 2xx with JSON or without a body. Keeps
 * 400, 403, 404 and 409 as errors of our own, and throws `connectorBadAnswer` (502) for everything else, 401 included:
 * our caller's session is valid. Rule: TEAM-12.
 */
export function passOperation({ status, body }: ConnectorResponse): PassedResponse {
  const kept = passedErrors[status];
  if (kept) throw new ApiError(kept);
  if (status < 200 || status > 299) throw refuseResponse(`it answered ${status}`);
  if (body.length > 0 && !isJson(body)) throw refuseResponse('its response is not JSON');
  return new PassedResponse(status, body);
}
