import { relative } from 'node:path';
import { DefaultReporter } from 'vitest/node';
import { inSeconds, root } from './steps.mjs';

const slowest = 10;
/** Without a terminal: a line each time another twentieth of the files is done. */
const linesWithoutTerminal = 20;

/** Milliseconds from the start of a file to its end, loading included. */
function durationOf(/** @type {import('vitest/node').TestModule} */ module) {
  const { duration, collectDuration, setupDuration } = module.diagnostic();
  return duration + collectDuration + setupDuration;
}

/**
 * Says while tests run how many files are done, of how many, and how many tests failed: on a terminal in one line that
 * changes, elsewhere now and then. A file that fails is shown at once with its tests, and the slowest ten at the end.
 */
export class TestProgress extends DefaultReporter {
  #files = 0;
  #done = 0;
  #passed = 0;
  #failed = 0;
  #shown = 0;

  constructor() {
    super({ summary: false });
  }

  /** @override */
  onTestRunStart(/** @type {Parameters<DefaultReporter['onTestRunStart']>[0]} */ specifications) {
    super.onTestRunStart(specifications);
    this.#files = specifications.length;
  }

  /** @override */
  onTestModuleEnd(/** @type {import('vitest/node').TestModule} */ module) {
    super.onTestModuleEnd(module);
    const states = Array.from(module.children.allTests(), (test) => test.result().state);
    this.#done += 1;
    this.#passed += states.filter((state) => state === 'passed').length;
    const failed = states.filter((state) => state === 'failed').length;
    this.#failed += failed === 0 && module.state() === 'failed' ? 1 : failed;
    this.#show();
  }

  /**
   * Only what failed is worth lines of its own.
   * @override
   */
  printTestModule(/** @type {import('vitest/node').TestModule} */ module) {
    if (module.state() !== 'failed') return;
    this.#clear();
    super.printTestModule(module);
  }

  /** @override */
  onTestRunEnd(
    /** @type {Parameters<DefaultReporter['onTestRunEnd']>[0]} */ modules,
    /** @type {Parameters<DefaultReporter['onTestRunEnd']>[1]} */ errors,
    /** @type {Parameters<DefaultReporter['onTestRunEnd']>[2]} */ reason,
  ) {
    this.#clear();
    super.onTestRunEnd(modules, errors, reason);
    const ordered = [...modules].sort((a, b) => durationOf(b) - durationOf(a)).slice(0, slowest);
    this.log(`The slowest ${ordered.length} files:`);
    for (const module of ordered) {
      const time = inSeconds(durationOf(module)).padStart(8);
      this.log(`${time}  ${module.project.name}  ${relative(root, module.moduleId)}`);
    }
  }

  #show() {
    const line = `${this.#done} of ${this.#files} files, ${this.#passed} tests passed, ${this.#failed} failed, ${inSeconds(performance.now() - this.start)}`;
    if (this.isTTY) {
      process.stdout.write(`\r\x1b[K${line}`);
      return;
    }
    const twentieth = Math.floor((this.#done * linesWithoutTerminal) / this.#files);
    if (twentieth > this.#shown) this.log(line);
    this.#shown = twentieth;
  }

  #clear() {
    if (this.isTTY) process.stdout.write('\r\x1b[K');
  }
}
