import type { Config } from './config.ts';

/** The configuration of a running service: one snapshot at a time, exchanged whole or not at all. */
export interface LiveConfig {
  /** Present snapshot. Work of some duration keeps the snapshot that it began with. */
  readonly current: Config;
  /** Counts up with each snapshot. */
  readonly generation: number;
  /**
   * Reloads everything and replaces the snapshot; values that only a start can change stay. Throws StartupError for a
   * wrong value, and then nothing changes. Rules: CONFIG-25, CONFIG-27.
   */
  reload(): Config;
  /** Calls `listener` with each new snapshot. */
  onChange(listener: (config: Config) => void): void;
}

/** Returns the values that stay until the next start. Rule: CONFIG-25. */
function fixedPart({ host, port, metricsPort, dataDir, databaseUrl, jwtSharedSecret, encryptionKey }: Config) {
  return { host, port, metricsPort, dataDir, databaseUrl, jwtSharedSecret, encryptionKey };
}

/**
 * Reads the configuration for the first time; throws StartupError for a wrong value.
 * @param read gets the running configuration; `null` at the start
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
