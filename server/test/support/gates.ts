type Held<K extends string> = Record<K, (...args: never[]) => Promise<unknown>>;

/** A call that waits before it does anything. */
export interface Gate {
  /** Until the call is made. */
  readonly arrived: Promise<void>;
  /** Lets the call go on. */
  open(): void;
}

/** Returns whether a call runs behind requests: it may come at any time, and passes every gate. */
function isBehindRequests(): boolean {
  return new Error('where').stack?.includes('storeLastUsed') ?? false;
}

/** Holds the next call of a method; all calls after it pass. */
export function holdNext<K extends string>(target: Held<K>, name: K): Gate {
  const original = target[name];
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  target[name] = async (...args) => {
    if (isBehindRequests()) return original(...args);
    target[name] = original;
    arrive();
    await opened;
    return original(...args);
  };
  return { arrived, open };
}

/** Holds calls of a method until there is a number of them; then all continue, and later calls pass. */
export function holdUntil<K extends string>(target: Held<K>, name: K, count: number): void {
  const original = target[name];
  let calls = 0;
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  target[name] = async (...args) => {
    if (isBehindRequests()) return original(...args);
    calls += 1;
    if (calls === count) {
      target[name] = original;
      open();
    }
    await opened;
    return original(...args);
  };
}
