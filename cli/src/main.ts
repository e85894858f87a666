import { nodeProblem } from '../../server/src/base/node-version.ts';

async function run(): Promise<number> {
  const { runCommandLine } = await import('./command-line.ts');
  const { processContext } = await import('./runtime-context.ts');
  return runCommandLine(process.argv.slice(2), processContext(process.env), {
    print: (text) => void process.stdout.write(text),
    printError: (text) => void process.stderr.write(text),
  });
}

// Files are accessible to their owner only.
process.umask(0o077);
// The reader of the output may go away.
process.stdout.on('error', () => {});
const problem = nodeProblem(process.versions.node);
if (problem !== null) process.stderr.write(`latchkey: ${problem}\n`);
const code = problem === null ? await run() : 1;
// A code that a command has set stays.
if (code !== 0) process.exitCode = code;
