/** The services that were started in this process and not stopped yet. */
export const running = new Set<{ readonly url: string }>();
