import { StartupError } from './base/errors.ts';
import { serve } from './process/serve.ts';

serve(process.env).catch((error: unknown) => {
  process.stderr.write(error instanceof StartupError ? `latchkey: ${error.message}\n` : `latchkey: ${String(error)}\n`);
  process.exitCode = 1;
});
