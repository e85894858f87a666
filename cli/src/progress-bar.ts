import { minute, second } from '../../server/src/base/clock.ts';

const cells = 30;
/** Earlier than that, nothing much can be said of the time that is left. */
const watchedMsMin = 2 * second;

function asText(leftMs: number): string {
  if (leftMs < 2 * minute) return `${Math.ceil(leftMs / second)} s`;
  return `${Math.ceil(leftMs / minute)} min`;
}

/** Progress bar with the remaining time, redrawn in place, where `out` is a terminal; elsewhere nothing is written. */
export function progressBar(out: NodeJS.WriteStream): (done: number, total: number) => void {
  let begun: { readonly ms: number; readonly done: number } | null = null;

  function timeLeft(done: number, total: number): string {
    const ms = performance.now();
    // Less than there was: another work has begun.
    if (begun === null || done < begun.done) begun = { ms, done };
    const watchedMs = ms - begun.ms;
    if (watchedMs < watchedMsMin || done >= total || done === begun.done) return '';
    return `, about ${asText((watchedMs * (total - done)) / (done - begun.done))} left`;
  }

  return (done, total) => {
    if (!out.isTTY || total === 0) return;
    const full = Math.floor((done / total) * cells);
    const bar = '█'.repeat(full) + '░'.repeat(cells - full);
    // The rest of the line may still show a longer text.
    out.write(`\r${bar} ${done} of ${total}${timeLeft(done, total)}\x1b[K${done < total ? '' : '\n'}`);
  };
}
