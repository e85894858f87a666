import { runCommandLine } from './command-line.ts';
import { processContext } from './runtime-context.ts';

// Files are accessible to their owner only.
process.umask(0o077);
// The reader of the output may go away.
process.stdout.on('error', () => {});
const code = await runCommandLine(process.argv.slice(2), processContext(process.env), {
  print: (text) => void process.stdout.write(text),
  printError: (text) => void process.stderr.write(text),
});
// A code that a command has set stays.
if (code !== 0) process.exitCode = code;
