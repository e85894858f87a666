import { day } from '../../../server/src/base/clock.ts';
import type { Config } from '../../../server/src/config/config.ts';
import { selectActiveOrganization } from '../../../server/src/db/members/organization.ts';
import { readOrganizationState } from '../../../server/src/features/org/public.ts';
import type { Outcome } from '../command.ts';
import { CommandError } from '../failures.ts';
import { operatorError } from '../operator-errors.ts';
import { withConfiguredStore } from '../operator-store.ts';
import type { RuntimeContext } from '../runtime-context.ts';
import { createOrganizationFor, findNewOrganization, type NewOrganization } from './create-organization.ts';
import type { Pass, Store } from './pass.ts';
import { passGroupNames } from './pass-group-names.ts';
import { passGroups } from './pass-groups.ts';
import { passTokens } from './pass-tokens.ts';
import { passUsers } from './pass-users.ts';
import { Report, Tally } from './report.ts';
import { Staging } from './staging.ts';

/** Input of an import. */
export interface ImportInput {
  readonly file: string;
  /** Only report what would be done. */
  readonly isDry: boolean;
  readonly isSkippingInvalid: boolean;
  /** Create the groups that a file names and that do not exist. */
  readonly isMakingGroups: boolean;
  /** An organization may be created from the file. */
  readonly mayCreateOrganization: boolean;
  /** Reads the file. */
  readonly stage: (staging: Staging) => Promise<unknown>;
}

/** An import under way. */
interface Import {
  readonly input: ImportInput;
  readonly services: Store;
  readonly staging: Staging;
  readonly newOrganization: NewOrganization | null;
  readonly rules: Pick<Pass, 'orgId' | 'nowMs' | 'keptSinceMs' | 'advance'>;
}

/** Goes through all records once. */
async function go({ input, services, staging, newOrganization, rules }: Import, isWriting: boolean): Promise<Tally> {
  const tally = new Tally();
  if (isWriting && newOrganization) await createOrganizationFor(services, newOrganization, { staging, tally });
  const pass = { ...rules, isWriting, services, staging, tally };
  await passUsers(pass, await passGroupNames(pass, input.isMakingGroups));
  await passGroups(pass);
  await passTokens(pass);
  return tally;
}

/**
 * Checks all records; again where some were left out, until none is, since others may rest on those: a token on the one that
 * made it.
 */
async function check(all: Import): Promise<Tally> {
  const { report } = all.staging;
  for (;;) {
    const before = report.problemCount;
    const tally = await go(all, false);
    if (report.problemCount === before) return tally;
  }
}

function outcome(input: ImportInput, report: Report, tally: Tally): Outcome {
  const changed = input.isDry ? 'This would be done, and nothing was written' : 'Imported';
  const unchanged = input.isDry ? 'Nothing would be changed' : 'Nothing was changed: all of it is here already';
  const { isChange } = tally;
  const data = { file: input.file, dryRun: input.isDry, changed: isChange && !input.isDry, ...report.toData(tally) };
  return { data, text: `${isChange ? changed : unchanged}\n${report.toText(tally)}`.trim() };
}

/** Ends the command with the report as the reason. */
function problems(kind: 'refused' | 'failed', message: string, { data, text }: Outcome): CommandError {
  const [, ...lines] = text.split('\n');
  return new CommandError(kind, message, { more: { report: data }, text: lines.join('\n') });
}

/** Ends the command where there are problems and no leave to skip them. Rule: CLI-18. */
function requireNoProblem(input: ImportInput, report: Report, tally: Tally): void {
  if (report.problemCount === 0 || input.isSkippingInvalid) return;
  const message = `There are problems with ${input.file}: nothing was written. --skip-invalid leaves out the records that have one`;
  throw problems('refused', message, outcome({ ...input, isDry: true }, report, tally));
}

async function checkAndWrite(all: Import): Promise<Outcome> {
  const { input, staging } = all;
  const { report } = staging;
  const checked = await check(all);
  requireNoProblem(input, report, checked);
  const reported = report.problemCount;
  if (input.isDry) return outcome(input, report, checked);
  const done = outcome(input, report, await go(all, true));
  if (report.problemCount === reported) return done;
  throw problems('failed', 'Some records were not written, since others changed the store meanwhile', done);
}

/** The organization that is here, or what to make it of. */
async function organizationFor({ db }: Store, input: ImportInput, staging: Staging) {
  const here = await selectActiveOrganization(db.read);
  if (here) return { orgId: here.id, newOrganization: null };
  if (await readOrganizationState(db.read)) throw operatorError('organizationDeleted');
  if (!input.mayCreateOrganization) throw operatorError('noOrganization');
  try {
    const newOrganization = findNewOrganization(staging);
    return { orgId: newOrganization.organization.id, newOrganization };
  } catch (error) {
    // A missing record may be one that has a problem.
    requireNoProblem(input, staging.report, new Tally());
    throw error;
  }
}

/**
 * Imports the records of a file: reads and checks all of them first, and then writes them, in transactions of bounded
 * size, also while a server runs. Ends the command where there are problems, and lists them. Rules: CLI-16 to CLI-20.
 */
export async function runImport(
  config: Config,
  { progress }: Pick<RuntimeContext, 'progress'>,
  input: ImportInput,
): Promise<Outcome> {
  const staging = new Staging(new Report());
  try {
    return await withConfiguredStore(config, async (services) => {
      await input.stage(staging);
      const { orgId, newOrganization } = await organizationFor(services, input, staging);
      const records = staging.count('users') + staging.count('groups') + staging.count('tokens');
      const total = input.isDry ? records : records * 2;
      let done = 0;
      const advance = (count: number) => {
        done += count;
        progress(Math.min(done, total), total);
      };
      const nowMs = services.clock.now();
      const keptSinceMs = nowMs - config.tokenRetentionDays * day;
      const rules = { orgId, nowMs, keptSinceMs, advance };
      return checkAndWrite({ input, services, staging, newOrganization, rules });
    });
  } finally {
    staging.close();
  }
}
