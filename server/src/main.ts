import { nodeProblem } from './base/node-version.ts';

function end(message: string): void {
  process.stderr.write(`latchkey: ${message}\n`);
  process.exitCode = 1;
}

const problem = nodeProblem(process.versions.node);
if (problem === null) {
  import('./process/serve.ts')
    .then(({ serve }) => serve(process.env))
    .catch((error: unknown) => {
      end(error instanceof Error && error.name === 'StartupError' ? error.message : String(error));
    });
} else {
  end(problem);
}
