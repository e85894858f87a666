/** `skipped`: there is nothing to check, or it cannot be checked because of another finding. */
type State = 'ok' | 'warning' | 'failed' | 'skipped';

/** Result of one check. Rule: CLI-21. */
export interface Check {
  readonly name: string;
  readonly state: State;
  /** One line: the problem, if there is one. Contains no secret. */
  readonly message: string;
  /** One line: what to do about it; `null` where nothing is wrong. */
  readonly cure: string | null;
}

/** Result of a check, without its name. */
export type Finding = Omit<Check, 'name'>;

export const fine = (message: string): Finding => ({ state: 'ok', message, cure: null });
export const skipped = (message: string): Finding => ({ state: 'skipped', message, cure: null });
export const warning = (message: string, cure: string): Finding => ({ state: 'warning', message, cure });
export const failed = (message: string, cure: string): Finding => ({ state: 'failed', message, cure });

/** Returns the message of an error, on one line. */
export function messageOf(error: unknown): string {
  const { message } = error instanceof Error ? error : { message: String(error) };
  return message.replace(/\s+/g, ' ').trim();
}

/** Returns a size in readable form. */
export function shownBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const power = bytes < 1_000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const amount = bytes / 1_000 ** power;
  return `${power === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${units[power]}`;
}
