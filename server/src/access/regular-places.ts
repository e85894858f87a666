/** Shorter runs occur in random passwords too. */
const runMin = 3;
const letterRunMin = 4;
const letter = /\p{L}/u;
/** The characters of a keyboard that follow one another, without and with the shift key. */
const rows = ['abcdefghijklmnopqrstuvwxyz', '01234567890', 'qwertyuiop', 'asdfghjkl', 'zxcvbnm'];
const shifted: Readonly<Record<string, string>> = {
  '!': '1',
  '@': '2',
  '#': '3',
  $: '4',
  '%': '5',
  '^': '6',
  '&': '7',
  '*': '8',
  '(': '9',
  ')': '0',
};
const year = /(?<!\d)(?:19|20)\d\d(?!\d)/g;

/** A character as its key: in lower case, digits for the signs above them. */
function keyOf(character: string): string {
  const lower = character.toLowerCase();
  return lower.length === character.length ? (shifted[lower] ?? lower) : character;
}

/** How far the next key lies, of those that count: 0 the same, 1 the next of a row, -1 the one before; `null`: elsewhere. */
function stepOf(one: string, other: string): number | null {
  if (one === other) return 0;
  const pair = one + other;
  if (rows.some((row) => row.includes(pair))) return 1;
  return rows.some((row) => row.includes(other + one)) ? -1 : null;
}

/** The places from one to before another. */
function range(start: number, end: number): readonly number[] {
  return Array.from({ length: end - start }, (_, place) => start + place);
}

/** The least length of a run: of letters, words hold short ones. */
function lengthMin(first: string, step: number): number {
  return step !== 0 && letter.test(first) ? letterRunMin : runMin;
}

/** The places of runs: a character again and again, or keys in their order. */
function runPlaces(keys: readonly string[]): readonly number[] {
  const places: number[] = [];
  let [start, runStep] = [0, null as number | null];
  for (let at = 1; at <= keys.length; at += 1) {
    const step = at < keys.length ? stepOf(keys[at - 1] ?? '', keys[at] ?? '') : null;
    if (step !== null && step === runStep) continue;
    if (runStep !== null && at - start >= lengthMin(keys[start] ?? '', runStep)) places.push(...range(start, at));
    // The last one may begin the next run.
    start = at - 1;
    runStep = step;
  }
  return places;
}

/**
 * The places of a text that add next to nothing: years, and runs such as `123456`, `!@#$`, `qwer` and `AAaa`. In time that
 * grows with its length. Rule: PASSWORD-20.
 */
export function regularPlaces(text: string): ReadonlySet<number> {
  const years = [...text.matchAll(year)].flatMap(({ index }) => range(index, index + 4));
  return new Set([...years, ...runPlaces(text.split('').map(keyOf))]);
}
