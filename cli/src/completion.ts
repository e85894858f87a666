import type { Command } from './command.ts';
import { flagOf } from './options.ts';

/** Words that may follow at a place of the command line. */
interface Place {
  /** The words before it, such as `org`; empty at the beginning. */
  readonly path: string;
  readonly words: readonly { readonly word: string; readonly summary: string }[];
}

/** Values that may follow an option. */
interface Value {
  readonly path: string;
  readonly option: string;
  /** `null` for anything. */
  readonly words: readonly string[] | 'directories' | 'files' | null;
}

const everywhere = [
  { word: '--json', summary: 'print the result as one line of JSON' },
  { word: '--help', summary: 'help' },
];

function valueWords(placeholder: string): Value['words'] {
  if (placeholder.includes('|')) return placeholder.split('|');
  if (placeholder === 'directory') return 'directories';
  return placeholder === 'file' ? 'files' : null;
}

/** Every place of the command line, and what may follow each option: from the declarations alone. */
function grammarOf(commands: readonly Command[]): {
  readonly places: readonly Place[];
  readonly values: readonly Value[];
} {
  const words = new Map<string, Map<string, string>>();
  const add = (path: string, word: string, summary: string) => {
    const known = words.get(path) ?? new Map(everywhere.map((one) => [one.word, one.summary]));
    if (!known.has(word)) known.set(word, summary);
    words.set(path, known);
  };
  const values: Value[] = [];
  for (const { name, summary, options } of commands) {
    const parts = name.split(' ');
    for (const [place, part] of parts.entries()) {
      add(parts.slice(0, place).join(' '), part, place === parts.length - 1 ? summary : `${part} …`);
    }
    for (const [key, { placeholder, description }] of Object.entries(options)) {
      add(name, flagOf(key), description);
      if (placeholder !== null) values.push({ path: name, option: flagOf(key), words: valueWords(placeholder) });
    }
    if (!words.has(name)) words.set(name, new Map(everywhere.map((one) => [one.word, one.summary])));
  }
  const places = [...words].map(([path, known]) => ({
    path,
    words: [...known].map(([word, text]) => ({ word, summary: text })),
  }));
  return { places, values };
}

/** In single quotes, as all three shells read them. */
const quoted = (text: string) => `'${text.replaceAll("'", '’').replaceAll('\\', '/')}'`;

/** Returns the command that bash runs to complete the value of an option. */
function bashValue({ words }: Value): string {
  if (words === 'directories') return 'compgen -d -- "$cur"';
  if (words === 'files') return 'compgen -f -- "$cur"';
  return words === null ? 'true' : `compgen -W ${quoted(words.join(' '))} -- "$cur"`;
}

function bashScript(commands: readonly Command[]): string {
  const { places, values } = grammarOf(commands);
  const known = places.filter(({ path }) => path !== '').map(({ path }) => quoted(path));
  const wordsAt = places.map(
    ({ path, words }) => `    ${quoted(path)}) words=${quoted(words.map(({ word }) => word).join(' '))} ;;`,
  );
  const after = values.map(
    (value) => `    ${quoted(`${value.path}:${value.option}`)}) COMPREPLY=($(${bashValue(value)})); return ;;`,
  );
  return `_latchkey() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" at='' words='' word
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
    case "\${at:+$at }$word" in
      ${known.join('|')}) at="\${at:+$at }$word" ;;
    esac
  done
  COMPREPLY=()
  case "$at:$before" in
${after.join('\n')}
  esac
  case "$at" in
${wordsAt.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o filenames -o default -F _latchkey latchkey ./latchkey
`;
}

/** The script for bash. Rule: CLI-23. */
export function bashCompletion(commands: readonly Command[]): string {
  return `# Completion of latchkey for bash: source <(latchkey completion bash)\n${bashScript(commands)}`;
}

/** The script for zsh, which reads that for bash. Rule: CLI-23. */
export function zshCompletion(commands: readonly Command[]): string {
  const head = '# Completion of latchkey for zsh: source <(latchkey completion zsh)';
  return `${head}\nautoload -U +X bashcompinit && bashcompinit\n${bashScript(commands)}`;
}

/** Returns fish's options to complete the value of an option. */
function fishValue({ words }: Value): string {
  if (words === 'directories') return " -x -a '(__fish_complete_directories)'";
  if (words === 'files') return ' -r -F';
  return words === null ? ' -x' : ` -x -a ${quoted(words.join(' '))}`;
}

/** The script for fish. Rule: CLI-23. */
export function fishCompletion(commands: readonly Command[]): string {
  const { places, values } = grammarOf(commands);
  const known = places.filter(({ path }) => path !== '').map(({ path }) => quoted(path));
  const line = (path: string, { word, summary }: Place['words'][number]) => {
    const value = values.find((one) => one.path === path && one.option === word);
    const what = word.startsWith('--') ? `-l ${word.slice(2)}${value ? fishValue(value) : ''}` : `-a ${word}`;
    return `complete -c latchkey -n "__latchkey_at ${quoted(path)}" ${what} -d ${quoted(summary)}`;
  };
  return `# Completion of latchkey for fish: latchkey completion fish | source
function __latchkey_at
  set -l at ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim "$at $word")
    contains -- "$next" ${known.join(' ')}; and set at "$next"
  end
  test "$at" = "$argv[1]"
end
complete -c latchkey -f
${places.flatMap(({ path, words }) => words.map((word) => line(path, word))).join('\n')}
`;
}
