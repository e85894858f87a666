import { type Command, command } from '../command.ts';

const shells = {
  bash: { script: 'bashCompletion', use: 'Put source <(latchkey completion bash) into ~/.bashrc.' },
  zsh: { script: 'zshCompletion', use: 'Put source <(latchkey completion zsh) into ~/.zshrc, after compinit.' },
  fish: { script: 'fishCompletion', use: 'Put latchkey completion fish | source into ~/.config/fish/config.fish.' },
} as const;

/**
 * The commands that print a script for a shell. Rule: CLI-23.
 * @param commands every command that is to be completed
 */
export function completions(commands: () => readonly Command[]): readonly Command[] {
  return Object.entries(shells).map(([shell, { script, use }]) =>
    command({
      name: `completion ${shell}`,
      summary: `Print the script that completes command lines in ${shell}`,
      details: `${use} It is generated from this release's commands: after an upgrade, start a new shell.`,
      examples: [`completion ${shell}`],
      options: {},
      async run() {
        const made = await import('../completion.ts');
        const text = made[script](commands());
        return { data: { shell, script: text }, text: text.trimEnd() };
      },
    }),
  );
}
