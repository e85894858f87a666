/**
 * Returns a function that waits for the end of this turn of the event loop, so that the responses of many requests of
 * one turn are written in one go. Each write alone may wake up the process at the other end, in the middle of our work;
 * written together, the first one wakes it and the others find it awake.
 */
export function flushPerTick(): () => Promise<void> {
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
