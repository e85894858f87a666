import type { Config } from './config.ts';

/** The configuration of a running service: one snapshot at a time, exchanged whole or not at all. */
export interface LiveConfig {
  /** What holds at the moment. Whoever works with it for longer keeps the snapshot that the work began with. */
  readonly current: Config;
  /** Counts up with each snapshot. */
  readonly generation: number;
  /**
   * Reads everything anew and exchanges the snapshot; what only a start can change stays as it is. Throws StartupError
   * for a wrong value, and then nothing changes. Rules: CONFIG-25, CONFIG-27.
   */
  reload(): Config;
  /** Calls `listener` with each new snapshot. */
  onChange(listener: (config: Config) => void): void;
}

/** What holds until the next start. Rule: CONFIG-25. */
function fixedPart({ host, port, dataDir, databaseUrl, jwtSharedSecret, encryptionKey }: Config) {
  return { host, port, dataDir, databaseUrl, jwtSharedSecret, encryptionKey };
}

/**
 * Reads the configuration for the first time; throws StartupError for a wrong value.
 * @param read is given what the service runs with; `null` at the start
 */
export function liveConfig(read: (running: Config | null) => Config): LiveConfig {
  let current = read(null);
  let generation = 0;
  const listeners: ((config: Config) => void)[] = [];

  return {
    get current() {
      return current;
    },
    get generation() {
      return generation;
    },
    reload() {
      current = { ...read(current), ...fixedPart(current) };
      generation += 1;
      for (const listener of listeners) listener(current);
      return current;
    },
    onChange(listener) {
      listeners.push(listener);
    },
  };
}
