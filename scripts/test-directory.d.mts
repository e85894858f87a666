/** Makes a directory for what tests write, in memory where there is room, and has it be the temporary directory. */
export function useTestDirectory(): void;
