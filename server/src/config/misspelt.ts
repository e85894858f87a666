import { closestName } from '../text/closest.ts';
import { variables } from './config.ts';

/** Variables of the environment that are read elsewhere and are no mistake. */
const others = new Set(['CONFIG_FILE', 'UV_THREADPOOL_SIZE', 'LATCHKEY_URL', 'LATCHKEY_TOKEN', 'LATCHKEY_TOKEN_FILE']);
/** Shorter names, and single words such as HOME, are too close to names of other programs. */
const charactersMin = 6;
const faultsMax = 2;
const prefix = 'LATCHKEY_';

/** A variable that has no effect, and the one that was probably meant. */
export interface MisspeltVariable {
  readonly given: string;
  readonly meant: string;
}

const knownNames: readonly string[] = variables.keyof().options.flatMap((name) => [name, `${name}_FILE`]);

function meantBy(given: string): string | null {
  if (others.has(given) || knownNames.includes(given)) return null;
  const bare = given.startsWith(prefix) ? given.slice(prefix.length) : given;
  if (bare !== given && knownNames.includes(bare)) return bare;
  if (given.length < charactersMin || !given.includes('_')) return null;
  const near = knownNames.filter((name) => name.includes('_') && Math.abs(name.length - given.length) <= faultsMax);
  const meant = closestName(given, near);
  // A longer name may differ in more letters there, and is another program's then.
  const isClose =
    meant !== null && closestName(given.slice(0, charactersMin), [meant.slice(0, charactersMin)]) !== null;
  return isClose ? meant : null;
}

/**
 * Returns the variables of an environment whose names are almost those of this service, such as `SMPT_URL`: they have no
 * effect. Rule: FIT-105.
 */
export function misspeltVariables(
  environment: Readonly<Record<string, string | undefined>>,
): readonly MisspeltVariable[] {
  return Object.keys(environment)
    .toSorted()
    .flatMap((given) => {
      const meant = environment[given] === undefined ? null : meantBy(given);
      return meant === null || environment[meant] !== undefined ? [] : [{ given, meant }];
    });
}
