/** Numbers that are the same at every run: for names that look real, and for nothing that must not be guessed. */
export interface Random {
  /** A whole number from 0 to `below - 1`. */
  readonly upTo: (below: number) => number;
  readonly pick: <T>(from: readonly [T, ...T[]]) => T;
}

/** The random numbers of one thing: two things of one seed have nothing in common (mulberry32). */
export function randomOf(seed: number, thing: number): Random {
  let state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(thing, 0x85ebca6b)) | 0;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const upTo = (below: number) => Math.floor(next() * below);
  return { upTo, pick: (from) => from[upTo(from.length)] ?? from[0] };
}
