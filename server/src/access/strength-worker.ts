import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import type * as core from '@zxcvbn-ts/core';
import type * as language from '@zxcvbn-ts/language-common';
import pLimit from 'p-limit';
import { second } from '../base/clock.ts';
import { ApiError } from '../base/errors.ts';

/** Strength of a text against guessing programs. */
export interface Estimate extends Pick<core.ZxcvbnResult, 'guesses'> {
  /** Keys of `translationKeys` of the library. */
  readonly feedback: core.FeedbackType;
}

/** Estimates the strength of texts, in a thread of their own: some texts take the library a second. */
export interface StrengthWorker {
  /**
   * Estimates each text. Throws `overloaded` when too many wait, and when an estimate takes longer than a minute.
   * @param words words that an attacker would try first for this password, in lower case
   */
  estimate(texts: readonly string[], words: readonly string[]): Promise<readonly Estimate[]>;
}

/** A last resort: a busy machine may take long to start the thread. */
const waitMsMax = 60 * second;
const waitingMax = 64;
/** The word list takes 40 MB: the thread ends when no password was set for a while. */
const idleMs = 60 * second;
const heapMegabytesMax = 192;

const factory: keyof typeof core = 'ZxcvbnFactory';
const dictionary: keyof typeof language = 'dictionary';
const graphs: keyof typeof language = 'adjacencyGraphs';
/** A thread loads plain JavaScript only, so its few lines are text; the packages are resolved from here. */
const source = `
const { parentPort, workerData } = require('node:worker_threads');
const { ${factory}: Library } = require(workerData.core);
const { ${dictionary}: dictionary, ${graphs}: graphs } = require(workerData.language);
const library = new Library({ dictionary, graphs });
parentPort.on('message', ({ texts, words }) => {
  parentPort.postMessage(texts.map((text) => {
    const { guesses, feedback } = library.check(text, words);
    return { guesses, feedback };
  }));
});`;

function startWorker(): Worker {
  const { resolve } = createRequire(import.meta.url);
  const workerData = { core: resolve('@zxcvbn-ts/core'), language: resolve('@zxcvbn-ts/language-common') };
  const resourceLimits = { maxOldGenerationSizeMb: heapMegabytesMax };
  const worker = new Worker(source, { eval: true, workerData, resourceLimits, stdin: false, name: 'passwords' });
  // Callers that wait for a result have listeners of their own.
  worker.on('error', () => {});
  worker.unref();
  return worker;
}

/** Sends one question and returns the result; the thread keeps the process alive meanwhile. */
function ask(worker: Worker, question: unknown): Promise<readonly Estimate[]> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new ApiError('overloaded', { headers: { 'retry-after': '2' } }));
    const timer = setTimeout(late, waitMsMax);
    const end = () => {
      clearTimeout(timer);
      worker.off('message', responded).off('error', failed);
      worker.unref();
    };
    const responded = (estimates: readonly Estimate[]) => {
      end();
      resolve(estimates);
    };
    const failed = (error: Error) => {
      end();
      reject(error);
    };
    worker.once('message', responded).once('error', failed);
    worker.ref();
    worker.postMessage(question);
  });
}

/** Opens the estimates of this process; the thread starts with the first of them. */
export function strengthWorker(): StrengthWorker {
  const limit = pLimit(1);
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;

  function stop(): void {
    void worker?.terminate();
    worker = undefined;
  }

  async function estimateNow(texts: readonly string[], words: readonly string[]): Promise<readonly Estimate[]> {
    clearTimeout(idle);
    worker ??= startWorker();
    try {
      return await ask(worker, { texts, words });
    } catch (error) {
      stop();
      throw error;
    } finally {
      idle = setTimeout(stop, idleMs).unref();
    }
  }

  return {
    estimate: async (texts, words) => {
      if (limit.pendingCount >= waitingMax) throw new ApiError('overloaded', { headers: { 'retry-after': '2' } });
      return limit(() => estimateNow(texts, words));
    },
  };
}
