/**
 * Waits for the end of this turn of the event loop, so that what many requests of one turn have to write is written in
 * one go. Each write by itself may wake up the process at the other end, in the middle of our work; written together,
 * the first one wakes it and the others find it awake.
 */
export function turnEnd(): () => Promise<void> {
  let end: Promise<void> | undefined;
  return () => {
    end ??= new Promise((resolve) => {
      setImmediate(() => {
        end = undefined;
        resolve();
      });
    });
    return end;
  };
}
