import { runCommandLine } from './command-line.ts';
import { processSurroundings } from './surroundings.ts';

// Whatever is written is its owner's alone.
process.umask(0o077);
// Whoever read what is printed may go away.
process.stdout.on('error', () => {});
const code = await runCommandLine(process.argv.slice(2), processSurroundings(process.env), {
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
});
// What a command set itself stays.
if (code !== 0) process.exitCode = code;
