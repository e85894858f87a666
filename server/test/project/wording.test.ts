import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** Words that `docs/glossary.md` replaces, with what to write instead. */
const replaced: Readonly<Record<string, string>> = {
  whoever: 'any caller, or the role that is meant',
  whomever: 'any caller, or the role that is meant',
  somebody: 'the actor, or someone',
  nobody: 'no one, no caller',
  everybody: 'all users, every caller',
  anybody: 'any caller, anyone',
  unwell: 'failing, unavailable',
  'way out': 'subscription, destination',
  'ways out': 'subscriptions, destinations',
  'past its time': 'expired',
  'past their time': 'expired',
  'so no longer': 'no longer',
  'good for': 'valid for',
  'is told': 'gets, is notified',
  'are told': 'get, are notified',
  'told of': 'notified of',
  'beside a server': 'while a server runs',
  'beside a running server': 'while a server runs',
};
const form = new RegExp(`\\b(${Object.keys(replaced).join('|')})\\b`, 'gi');

const root = new URL('../../../', import.meta.url).pathname;
const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n');
/** Decisions are not among them: they keep the words of their day. */
const documents = tracked.filter((file) => /^(docs\/(guides\/)?)?[\w-]+\.md$/.test(file));
const files = tracked.filter(
  (file) => /^(server|cli)\/src\/.*\.ts$/.test(file) && !/\.(test|gen)\.ts$|\/migrations\//.test(file),
);

function wordsIn(text: string): string[] {
  return [...text.matchAll(form)].map(([word]) => `${word} (write: ${replaced[word.toLowerCase()]})`);
}

describe('wording (docs/glossary.md)', () => {
  it('comments and texts use the words of the glossary', () => {
    expect(files.length).toBeGreaterThan(300);
    const found = files.flatMap((file) =>
      wordsIn(readFileSync(`${root}${file}`, 'utf8')).map((words) => `${file}: ${words}`),
    );
    expect(found).toEqual([]);
  });

  it.each(documents)('%s does too, but where it names what to avoid', (file) => {
    const text = readFileSync(`${root}${file}`, 'utf8').replaceAll(/(?<!\*)\*[^*\n]+\*(?!\*)/g, '');
    expect(wordsIn(text)).toEqual([]);
  });
});
