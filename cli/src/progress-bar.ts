const cells = 30;

/** A bar that is drawn over itself, where `out` is a terminal; elsewhere nothing is written. */
export function progressBar(out: NodeJS.WriteStream): (done: number, total: number) => void {
  return (done, total) => {
    if (!out.isTTY || total === 0) return;
    const full = Math.floor((done / total) * cells);
    const bar = '█'.repeat(full) + '░'.repeat(cells - full);
    out.write(`\r${bar} ${done} of ${total}${done < total ? '' : '\n'}`);
  };
}
