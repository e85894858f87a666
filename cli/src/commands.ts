import type { Command } from './command.ts';
import { orgPurge } from './commands/org-purge.ts';
import { orgRestore } from './commands/org-restore.ts';
import { orgStatus } from './commands/org-status.ts';
import { seed } from './commands/seed.ts';

/** Every command there is. */
export const commands: readonly Command[] = [orgStatus, orgRestore, orgPurge, seed];
