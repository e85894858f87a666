interface Usage {
  readonly area: string;
  readonly files: number;
  readonly tests: number;
  readonly cpuSeconds: number;
  /** Per cent of the CPU time of the run. */
  readonly share: number;
}

interface Allowed {
  readonly area: string;
  readonly files: number;
  readonly tests: number;
  readonly share: number;
  readonly why: string;
}

/** The area of a test file; throws where it belongs to none. */
export function areaOf(file: string): string;
/** The rows of the table in docs/test-budget.md, or of another text. */
export function readBudget(text?: string): readonly Allowed[];
/** One text for each area that has more than its row allows, or no row. */
export function overBudget(used: readonly Usage[], budget: readonly Allowed[]): readonly string[];
