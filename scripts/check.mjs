// npm run check: the static checks alone, all of them even when one fails.
import { runChecks } from './checks.mjs';
import { ensureInstalled, requireNode } from './setup.mjs';
import { childrenCpuMs, exitWith, inSeconds } from './steps.mjs';

try {
  requireNode();
  await ensureInstalled();
  const failed = await runChecks({ keepGoing: true });
  const cpuMs = childrenCpuMs();
  const cpu = cpuMs === null ? '' : `, ${inSeconds(cpuMs)} of CPU`;
  const time = `${inSeconds(performance.now())}${cpu}`;
  process.stdout.write(
    failed.length === 0 ? `All checks passed in ${time}\n` : `Failed: ${failed.join(', ')} (${time})\n`,
  );
  process.exitCode = failed.length === 0 ? 0 : 1;
} catch (error) {
  exitWith(error);
}
