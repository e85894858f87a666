import { StartupError } from './errors.ts';
import { serve } from './serve.ts';

serve(process.env).catch((error: unknown) => {
  process.stderr.write(error instanceof StartupError ? `latchkey: ${error.message}\n` : `latchkey: ${String(error)}\n`);
  process.exitCode = 1;
});
