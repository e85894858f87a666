/** The middle of the numbers, the mean of the two middle ones for an even count; NaN for none. */
export function median(numbers: ArrayLike<number>): number {
  const sorted = Float64Array.from(numbers).sort();
  const upper = Math.floor(sorted.length / 2);
  const [below = Number.NaN, above = Number.NaN] = [sorted[upper - 1 + (sorted.length % 2)], sorted[upper]];
  return (below + above) / 2;
}

/** The value that `share` (0–1) of the numbers don't exceed (nearest rank); NaN for none. */
export function percentile(numbers: ArrayLike<number>, share: number): number {
  const sorted = Float64Array.from(numbers).sort();
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
