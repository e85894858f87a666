/** The middle of the numbers, the mean of the two middle ones for an even count; NaN for none. */
export function median(numbers) {
  const sorted = Float64Array.from(numbers).sort();
  if (sorted.length === 0) return Number.NaN;
  const upper = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[upper] : (sorted[upper - 1] + sorted[upper]) / 2;
}

/** The value that `share` (0–1) of the ascending numbers don't exceed (nearest rank); NaN for none. */
export function percentile(sorted, share) {
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}
