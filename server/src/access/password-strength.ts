import type { TranslationKeys } from '@zxcvbn-ts/core';
import { refuseInput } from '../base/errors.ts';
import { regularPlaces } from './regular-places.ts';
import { type Estimate, strengthWorker } from './strength-worker.ts';
import { usualWords } from './usual-words.ts';

/** Guesses that a password must withstand: score 3 of zxcvbn, which eight random characters just reach. */
const guessesMin = 1e8;
/** The library's time grows with the square of the length: of a longer password only both ends are checked. */
const charactersMax = 40;
const wordCharactersMin = 3;
/** Shorter words are part of too many others: they count where they stand alone. */
const innerCharactersMin = 4;
const wordsMax = 100;

/** Warnings of the library, as the end of "is too easy to guess: ". */
const warnings: TranslationKeys['warnings'] = {
  straightRow: 'it follows a row of keys',
  keyPattern: 'it follows a short pattern of keys',
  simpleRepeat: 'it repeats one character, as "aaa" does',
  extendedRepeat: 'it repeats a few characters, as "abcabc" does',
  sequences: 'it holds a sequence such as "abc" or "6543"',
  recentYears: 'it holds a recent year',
  dates: 'it holds a date',
  topTen: 'it is among the ten most common passwords',
  topHundred: 'it is among the hundred most common passwords',
  common: 'it is a common password',
  similarToCommon: 'it resembles a common password',
  wordByItself: 'it is little more than one word',
  namesByThemselves: 'it is little more than a name',
  commonNames: 'it holds a common name',
  userInputs: 'it is little more than a name of the account or its organization, or a common word',
  pwned: 'it is known from a data breach',
};
const usual = 'it is too short for how regular it is';
const ownWords =
  'without names of the account and its organization, words that many people take, such as "password" or "summer", years, and rows such as "1234", too little is left';
const advice = 'Three or four unrelated words, or 12 random characters, are strong';

/** Returns the words that an attacker would try first for a user, in lower case: each name and address in its parts. */
export function wordsOf(texts: readonly (string | null)[]): readonly string[] {
  const words = texts.flatMap((text) =>
    (text ?? '')
      .normalize('NFC')
      .toLowerCase()
      .split(/[^\p{L}\p{N}]+/u),
  );
  return [...new Set(words)].filter((word) => word.length >= wordCharactersMin).slice(0, wordsMax);
}

const disguises: Readonly<Record<string, string>> = {
  '@': 'a',
  '4': 'a',
  '3': 'e',
  '0': 'o',
  $: 's',
  '5': 's',
  '7': 't',
};

/** In lower case and without disguises, unit by unit, so that places stay; `one` is what 1 and ! stand for. */
function plain(text: string, one: 'i' | 'l'): string {
  return [...text]
    .map((character) => {
      const lower = character.toLowerCase();
      const read = lower === '1' || lower === '!' ? one : (disguises[lower] ?? lower);
      return read.length === character.length ? read : character;
    })
    .join('');
}

const letterAtEnd = /\p{L}$/u;
const letterAtStart = /^\p{L}/u;

/** The places of a text that a word covers. */
function placesOf(word: string, text: string): readonly number[] {
  const starts: number[] = [];
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const end = at + word.length;
    // Two units are one character at least; more would cost time with each place.
    const isAfterLetter = letterAtEnd.test(text.slice(Math.max(0, at - 2), at));
    const isAlone = !isAfterLetter && !letterAtStart.test(text.slice(end, end + 2));
    if (isAlone || word.length >= innerCharactersMin) starts.push(at);
  }
  return starts.flatMap((at) => Array.from({ length: word.length }, (_, place) => at + place));
}

/** What is left of a password without some words, however they are disguised, and without years and runs. */
function without(text: string, words: readonly string[]): string {
  const forms = [plain(text, 'i'), plain(text, 'l')];
  const hidden = new Set(forms.flatMap((form) => words.flatMap((word) => placesOf(word, form))));
  for (const place of regularPlaces(text)) hidden.add(place);
  return text
    .split('')
    .filter((_, place) => !hidden.has(place))
    .join('');
}

function endsOf(text: string): readonly string[] {
  return text.length <= charactersMax ? [text] : [text.slice(0, charactersMax), text.slice(-charactersMax)];
}

function strongest(estimates: readonly Estimate[]): Estimate | undefined {
  return estimates.toSorted((one, other) => other.guesses - one.guesses)[0];
}

function isWarning(key: string): key is keyof typeof warnings {
  return key in warnings;
}

const worker = strengthWorker();

/**
 * Why a password is found quickly by guessing, as the end of a sentence about it; `null`: it is not. Rule: PASSWORD-20.
 * @param words what belongs to the account, from `textOf`
 */
export async function weaknessOf(password: string, words: readonly string[]): Promise<string | null> {
  const text = password.normalize('NFC');
  const known = [...words, ...usualWords];
  const rest = without(text, known);
  const whole = endsOf(text);
  const estimates = await worker.estimate(rest === text ? whole : [...whole, ...endsOf(rest)], known);
  const ofWhole = strongest(estimates.slice(0, whole.length));
  if (ofWhole && ofWhole.guesses < guessesMin) {
    const { warning } = ofWhole.feedback;
    return `is too easy to guess: ${warning !== null && isWarning(warning) ? warnings[warning] : usual}. ${advice}`;
  }
  const ofRest = strongest(estimates.slice(whole.length));
  return ofRest && ofRest.guesses < guessesMin ? `is too easy to guess: ${ownWords}. ${advice}` : null;
}

/** Throws `invalidInput` for a password that guessing finds quickly. Rule: PASSWORD-20. */
export async function requireStrong(field: string, password: string, words: readonly string[]): Promise<void> {
  const message = await weaknessOf(password, words);
  if (message !== null) throw refuseInput({ field, message });
}
