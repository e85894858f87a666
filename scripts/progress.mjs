import { inSeconds, isStopping, say } from './steps.mjs';

const progressEveryMs = 1_000;

/**
 * Says what is done, and how long it took. On a terminal the line shows the seconds while it runs, and the part that
 * `work` names by `show`. What a signal ended has not failed. Rule: FIT-109.
 */
export async function progress(
  /** @type {string} */ title,
  /** @type {(show: (part: string) => void) => Promise<void>} */ work,
) {
  const startedMs = performance.now();
  const isTerminal = process.stderr.isTTY === true;
  let part = '';
  const line = () => `${title}…${part === '' ? '' : ` ${part}`} ${inSeconds(performance.now() - startedMs)}`;
  const redraw = () => say(`\r\x1b[K${line()}`);
  const timer = isTerminal ? setInterval(redraw, progressEveryMs) : undefined;
  const show = (/** @type {string} */ text) => {
    part = text;
    if (isTerminal) redraw();
  };
  say(isTerminal ? line() : `${title}… `);
  const end = (/** @type {string} */ text) => say(isTerminal ? `\r\x1b[K${title}… ${text}\n` : `${text}\n`);
  try {
    await work(show);
    end(inSeconds(performance.now() - startedMs));
  } catch (error) {
    end(isStopping() ? 'interrupted' : 'failed');
    throw error;
  } finally {
    clearInterval(timer);
  }
}
