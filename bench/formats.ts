/** Milliseconds, tenths below ten. */
export const milliseconds = (number: number): string => `${number < 10 ? number.toFixed(1) : Math.round(number)} ms`;

/** Bytes in kilobytes, or in megabytes from one on. */
export const size = (bytes: number): string =>
  bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

/** Three digits, or one after the point from ten on. */
export const significant = (number: number): string => (number >= 10 ? number.toFixed(1) : number.toPrecision(3));

/** A share of 0 to 1 in whole percent; `?` for null. */
export const percent = (share: number | null): string => (share === null ? '?' : `${Math.round(share * 100)} %`);

/** A rate of requests. */
export const rate = ({ requestsPerSecond }: { readonly requestsPerSecond: number }): string =>
  `${Math.round(requestsPerSecond)} req/s`;

/** Numbers in a row, each in its format. */
export const listed = (numbers: readonly number[], format: (number: number) => string | number = Math.round): string =>
  numbers.map((number) => format(number)).join(', ');
