import { cpus } from 'node:os';

/** Lines of cells as plain text, each column as wide as its longest cell. */
export function aligned(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, place) => Math.max(...lines.map((line) => line[place]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, place) => cell.padEnd(widths[place] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** What results were measured on. */
export function machine() {
  return { node: process.version, processor: cpus()[0]?.model ?? 'unknown', cores: cpus().length };
}
