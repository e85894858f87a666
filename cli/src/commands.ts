import type { Command } from './command.ts';
import { adminRecover } from './commands/admin-recover.ts';
import { auditArchive } from './commands/audit-archive.ts';
import { auditExport } from './commands/audit-export.ts';
import { auditSignErasures } from './commands/audit-sign-erasures.ts';
import { auditVerify } from './commands/audit-verify.ts';
import { backup } from './commands/backup.ts';
import { completions } from './commands/completion.ts';
import { doctor } from './commands/doctor.ts';
import { importDump } from './commands/import-dump.ts';
import { importUsers } from './commands/import-users.ts';
import { keysRotate } from './commands/keys-rotate.ts';
import { mcp } from './commands/mcp.ts';
import { migrate } from './commands/migrate.ts';
import { move } from './commands/move.ts';
import { orgCreate } from './commands/org-create.ts';
import { orgPurge } from './commands/org-purge.ts';
import { orgRestore } from './commands/org-restore.ts';
import { orgStatus } from './commands/org-status.ts';
import { restore } from './commands/restore.ts';
import { seed } from './commands/seed.ts';
import { serve } from './commands/serve.ts';
import { serviceCreate } from './commands/service-create.ts';
import { serviceList } from './commands/service-list.ts';
import { serviceRevoke } from './commands/service-revoke.ts';
import { tokenList } from './commands/token-list.ts';
import { tokenRevoke } from './commands/token-revoke.ts';
import { userErase } from './commands/user-erase.ts';
import { userUnlink } from './commands/user-unlink.ts';

/** Every command there is. */
export const commands: readonly Command[] = [
  ...completions(() => commands),
  serve,
  migrate,
  doctor,
  move,
  backup,
  restore,
  mcp,
  adminRecover,
  orgCreate,
  orgStatus,
  orgRestore,
  orgPurge,
  serviceCreate,
  serviceList,
  serviceRevoke,
  tokenList,
  tokenRevoke,
  userUnlink,
  userErase,
  auditVerify,
  auditSignErasures,
  auditExport,
  auditArchive,
  keysRotate,
  importUsers,
  importDump,
  seed,
];
