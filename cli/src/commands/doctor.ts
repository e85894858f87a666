import { command } from '../command.ts';
import type { Check } from '../doctor/check.ts';
import { CommandError } from '../failures.ts';
import { flag, storeOptions } from '../options.ts';

const marks = { ok: 'ok', warning: 'warning', failed: 'FAILED', skipped: '-' } as const;

function listed(checks: readonly Check[]): string {
  const column = (text: readonly string[]) => Math.max(...text.map(({ length }) => length)) + 2;
  const [nameWidth, markWidth] = [column(checks.map(({ name }) => name)), column(Object.values(marks))];
  return checks
    .map(({ name, state, message, cure }) => {
      const line = `${name.padEnd(nameWidth)}${marks[state].padEnd(markWidth)}${message}`;
      return cure === null ? line : `${line}\n${' '.repeat(nameWidth + markWidth)}→ ${cure}`;
    })
    .join('\n');
}

/** Rules: CLI-21, CLI-22. */
export const doctor = command({
  name: 'doctor',
  summary: 'Check everything that this instance needs, and report problems with their remedies',
  details:
    'Configuration, store, files, server, clock, disk, mail server, broker, single sign-on, connector backend, events and addresses. ' +
    'Run it with or without a running server, as the user and with the environment of the server. It changes nothing and ' +
    'sends nothing: of the mail server and the others it asks whether they would take it. Ends with 1 when something failed.',
  examples: ['doctor', 'doctor --deep --data-dir /var/lib/latchkey', 'doctor --json'],
  options: {
    ...storeOptions,
    deep: flag('go through the whole store and the whole audit log, however long that takes'),
  },
  async run({ dataDir, deep }, context) {
    const { examineInstance } = await import('../doctor/examine.ts');
    const checks = await examineInstance({ dataDir, isDeep: deep }, context);
    const text = listed(checks);
    const failures = checks.filter(({ state }) => state === 'failed').map(({ name }) => name);
    if (failures.length === 0) return { data: { checks }, text };
    throw new CommandError('failed', `Failed: ${failures.join(', ')}`, { more: { checks }, text });
  },
});
