import type { z } from 'zod';
import { refuseInput } from '../base/errors.ts';
import { closestName } from '../text/closest.ts';
import { unknownName } from './input.ts';

const namedMax = 20;
const nameMax = 100;

/**
 * Refuses keys that a body declares no meaning for, and a body without any key, where a backend that might know them is
 * not there to get them. Throws `invalidInput`. Rules: FIT-72, CRED-2.
 */
export function requireKnownKeys(body: object, { shape }: z.ZodObject): void {
  const known = Object.keys(shape);
  const given = Object.keys(body);
  if (given.length === 0) throw refuseInput({ field: 'body', message: `must have one of ${known.join(', ')}` });
  const unknown = given.filter((key) => !known.includes(key)).slice(0, namedMax);
  if (unknown.length === 0) return;
  throw refuseInput(
    ...unknown.map((key) => ({
      field: `body.${key.slice(0, nameMax)}`,
      message: unknownName('key', closestName(key, known)),
    })),
  );
}
