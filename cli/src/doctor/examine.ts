import { second, systemClock } from '../../../server/src/base/clock.ts';
import type { Config } from '../../../server/src/config/config.ts';
import { misspeltVariables } from '../../../server/src/config/misspelt.ts';
import type { Database } from '../../../server/src/db/database.ts';
import { selectLatest } from '../../../server/src/db/files/store-check.ts';
import { operatorConfig } from '../operator-store.ts';
import { presentKey } from '../present-key.ts';
import type { RuntimeContext } from '../runtime-context.ts';
import { type Check, type Finding, failed, fine, messageOf, skipped, warning } from './check.ts';
import { checkClock, checkDisk, checkFiles, checkUser } from './machine-checks.ts';
import { checkBroker, checkConnector, checkMail, checkSignOn } from './outside-checks.ts';
import { checkServer } from './server-check.ts';
import {
  checkAddresses,
  checkAudit,
  checkErasures,
  checkEvents,
  checkIntegrity,
  checkStore,
  checkTokens,
} from './store-checks.ts';

/** Longer than each step of a check may take alone. */
const waitMsMax = 30 * second;

interface Input {
  readonly dataDir: string | null;
  /** Check everything, however long it takes. */
  readonly isDeep: boolean;
}

/** Result of a check, and the value that later ones need. */
interface Found<T> {
  readonly finding: Finding;
  readonly value: T;
}

/** Runs one check; an error, or a time-out, is a finding, too. Rule: CLI-22. */
async function attempt<T>(
  name: string,
  check: () => Found<T> | Promise<Found<T>>,
  waitMs = waitMsMax,
): Promise<{ readonly check: Check; readonly value: T | null }> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Found<null>>((resolve) => {
    const finding = failed('Nothing came of it in time', 'Find out why it does not respond, and run this again');
    if (Number.isFinite(waitMs)) timer = setTimeout(() => resolve({ finding, value: null }), waitMs);
  });
  try {
    const { finding, value } = await Promise.race([Promise.resolve().then(check), late]);
    return { check: { name, ...finding }, value };
  } catch (error) {
    const finding = failed(messageOf(error), 'Follow the message, and run this again');
    return { check: { name, ...finding }, value: null };
  } finally {
    clearTimeout(timer);
  }
}

async function examine(name: string, check: () => Finding | Promise<Finding>, waitMs = waitMsMax): Promise<Check> {
  return (await attempt(name, async () => ({ finding: await check(), value: null }), waitMs)).check;
}

/** Checks that need the store. */
async function examineStore(
  db: Database | null,
  { isDeep, config }: Input & { readonly config: Config },
  { progress }: RuntimeContext,
): Promise<readonly Check[]> {
  const withStore = (check: (store: Database) => Promise<Finding>) => async () =>
    db ? check(db) : skipped('There is no store to check');
  const events = await examine('events', withStore(checkEvents));
  const addresses = await examine('addresses', withStore(checkAddresses));
  const tokens = await examine('tokens', withStore(checkTokens));
  const erasures = await examine('erasures', withStore(checkErasures));
  const audit = async (store: Database) =>
    isDeep
      ? checkAudit(store, { key: presentKey(config), progress })
      : skipped('Going through the audit log takes a while: --deep does');
  return [events, addresses, tokens, erasures, await examine('audit log', withStore(audit), Number.POSITIVE_INFINITY)];
}

/** Checks of others that are reached over the network, all at the same time. */
async function examineOutside(config: Config, db: Database | null): Promise<readonly Check[]> {
  const subject = { config, db };
  return Promise.all([
    examine('mail', () => checkMail(subject)),
    examine('broker', () => checkBroker(subject)),
    examine('single sign-on', () => checkSignOn(subject)),
    examine('connector', () => checkConnector(subject)),
  ]);
}

/** Checks of this machine, and of the server on it. */
async function examineMachine(config: Config, db: Database | null): Promise<readonly Check[]> {
  const { dataDir } = config;
  const server = await attempt('server', () => checkServer(config, db));
  const clock = await examine('clock', async () =>
    checkClock({
      nowMs: systemClock.now(),
      latestMs: db && (await selectLatest(db.read)),
      serverAheadMs: server.value,
    }),
  );
  const files = await examine('files', () => checkFiles(dataDir));
  const user = await examine('user', () => checkUser(process.getuid?.()));
  return [user, files, await examine('disk', () => checkDisk(dataDir)), server.check, clock];
}

/** What there is to say of a configuration that can be read. Rule: FIT-105. */
function configurationFinding({ baseUrl }: Config, { environment }: RuntimeContext): Finding {
  const found = `Every variable has an allowed value; the public address is ${baseUrl}`;
  const misspelt = misspeltVariables(environment).map(({ given, meant }) => `${given} (did you mean ${meant}?)`);
  if (misspelt.length === 0) return fine(found);
  return warning(`Variables without effect: ${misspelt.join(', ')}`, 'Correct their names, or unset them');
}

async function examineAll(config: Config, input: Input, context: RuntimeContext): Promise<readonly Check[]> {
  const { check: store, value: db } = await attempt('store', () => checkStore(config));
  try {
    const integrity = await examine('integrity', () => checkIntegrity(config, db, input.isDeep));
    const machine = await examineMachine(config, db);
    const outside = await examineOutside(config, db);
    return [store, integrity, ...machine, ...outside, ...(await examineStore(db, { ...input, config }, context))];
  } finally {
    await db?.close();
  }
}

/**
 * Checks everything that an instance needs, and returns the findings. It changes and sends nothing. Rules: CLI-21,
 * CLI-22.
 */
export async function examineInstance(input: Input, context: RuntimeContext): Promise<readonly Check[]> {
  let config: Config;
  try {
    config = operatorConfig(context, input.dataDir);
  } catch (error) {
    return [{ name: 'configuration', ...failed(messageOf(error), 'Correct it; nothing else was checked') }];
  }
  const read = configurationFinding(config, context);
  return [{ name: 'configuration', ...read }, ...(await examineAll(config, input, context))];
}
