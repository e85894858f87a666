import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { passwordHasher } from '../../../server/src/access/passwords.ts';
import { appendAudit } from '../../../server/src/audit-log/audit-log.ts';
import { day } from '../../../server/src/base/clock.ts';
import type { Config } from '../../../server/src/config/config.ts';
import type { Tx } from '../../../server/src/db/database.ts';
import { createGroup, findFirstAdministrator } from '../../../server/src/features/groups/public.ts';
import { createOrganization, readOrganizationState } from '../../../server/src/features/org/public.ts';
import { addUnusableTokens, issueTokenFor } from '../../../server/src/features/tokens/public.ts';
import { addUsers } from '../../../server/src/features/users/public.ts';
import { openSigningKeys } from '../../../server/src/keys/keys.ts';
import { CommandError } from '../failures.ts';
import { operator, operatorServices } from '../operator-store.ts';
import { openSeedStore, seedKeys } from './open-seed-store.ts';
import { userOf } from './people.ts';
import { randomOf } from './random.ts';

/** Users, or tokens, of one transaction: some hundred milliseconds, which a running server has to wait. */
const atOnce = 2_000;
/** Longer than a waiting server takes to try again, so that it gets its turn between two transactions. */
const pauseMs = 15;
const membersMax = 200;
const adminEmail = 'admin@example.com';
const words = ['Aurora', 'Σειρά', 'Полюс', '青空', 'Über', 'نجم'] as const;

type Store = ReturnType<typeof operatorServices>;

/** Input of seeding. */
export interface SeedInput {
  readonly users: number;
  readonly groups: number;
  readonly tokens: number;
  /** The same seed creates the same users. */
  readonly seed: number;
  /** The password of the administrator that a new organization gets; `null`: a generated one. */
  readonly password: string | null;
  /** Create a usable token for an administrator. */
  readonly token: boolean;
}

/** Result of seeding. The secrets are stored nowhere, and `null` where none was created. */
export interface Seeded {
  readonly organization: string;
  readonly isNew: boolean;
  readonly password: string | null;
  readonly token: string | null;
}

type Progress = (done: number, total: number) => void;

async function createFor(services: Store, password: string) {
  const passwordHash = await (await passwordHasher()).hash(password);
  const profile = {
    accountType: 'business' as const,
    contactEmail: adminEmail,
    registeredName: 'Example Ltd',
    shortName: null,
    phoneNumber: null,
  };
  const newOrganization = { profile, adminFullName: 'Example Administrator', passwordHash, origin: operator };
  const { id, slug, domain } = await services.db.transaction((tx) => createOrganization(tx, services, newOrganization));
  return { id, slug, domain };
}

async function organizationFor(services: Store, given: string | null) {
  const known = await readOrganizationState(services.db.read);
  if (known?.isDeleted) {
    throw new CommandError('refused', 'The organization is deleted: restore it or purge it first');
  }
  if (known && given !== null) {
    throw new CommandError('refused', 'There is an organization already: its administrator keeps the password');
  }
  if (known) return { ...known, isNew: false, password: null };
  // Upper and lower case, a digit and a special character, whatever the random part contains.
  const password = given ?? `${randomBytes(15).toString('base64url')}-Aa1`;
  return { ...(await createFor(services, password)), isNew: true, password };
}

/** A store that is being filled. */
interface Filling {
  readonly services: Store;
  readonly orgId: string;
  readonly domain: string;
  readonly input: SeedInput;
  /** Counts finished work. */
  readonly advance: (count: number) => void;
}

/** One transaction of the filling, as long as the organization is there. */
function inTransaction<T>({ services, orgId }: Filling, work: (tx: Tx) => Promise<T>): Promise<T> {
  return services.db.transaction(async (tx) => {
    const state = await readOrganizationState(tx);
    if (state?.id === orgId && !state.isDeleted) return work(tx);
    throw new CommandError('refused', 'The organization was deleted meanwhile: the records created so far stay in it');
  });
}

/** Adds the users; returns their ids, and the number of the first. */
async function fillUsers(filling: Filling) {
  const { services, orgId, domain, input, advance } = filling;
  const userIds: string[] = [];
  let first: number | null = null;
  const newUser = (number: number) => {
    first ??= number;
    return userOf({ seed: input.seed, number, domain });
  };
  while (userIds.length < input.users) {
    const count = Math.min(atOnce, input.users - userIds.length);
    userIds.push(...(await inTransaction(filling, (tx) => addUsers(tx, services, { orgId, count, newUser }))));
    advance(count);
    await setTimeout(pauseMs);
  }
  return { userIds, first };
}

async function fillGroups(filling: Filling, userIds: readonly string[], first: number | null) {
  const { services, orgId, input } = filling;
  for (let place = 0; place < input.groups; place += 1) {
    const random = randomOf(input.seed, place);
    const places = Array.from({ length: 1 + random.upTo(membersMax) }, () => random.upTo(userIds.length));
    const members = [...new Set(places)].flatMap((member) => userIds[member] ?? []);
    // The number of the first new user is unique to this run.
    const name = `${random.pick(words)} ${first}-${place + 1}`;
    await inTransaction(filling, (tx) => createGroup(tx, services, { orgId, name, userIds: members }));
  }
}

async function fillTokens(filling: Filling, userIds: readonly string[]) {
  const { services, orgId, input, advance } = filling;
  for (let done = 0; done < input.tokens; done += atOnce) {
    const count = Math.min(atOnce, input.tokens - done);
    const owners = Array.from({ length: count }, (_, place) => userIds[(done + place) % userIds.length] ?? '');
    const tokens = { orgId, userIds: owners, name: 'Seeded', scopes: 'user:read' };
    await inTransaction(filling, (tx) => addUnusableTokens(tx, services, tokens));
    advance(count);
    await setTimeout(pauseMs);
  }
}

async function fill(filling: Filling): Promise<void> {
  const { services, orgId, input } = filling;
  const { users, groups, tokens, seed } = input;
  const record = { action: 'store.seeded', orgId, actor: null, subjectId: orgId, origin: operator } as const;
  await inTransaction(filling, (tx) =>
    appendAudit(tx, services, { ...record, details: { users, groups, tokens, seed } }),
  );
  const { userIds, first } = await fillUsers(filling);
  await fillGroups(filling, userIds, first);
  await fillTokens(filling, userIds);
}

async function usableToken(services: Store, config: Config, orgId: string): Promise<string> {
  const owner = await findFirstAdministrator(services.db.read, orgId);
  if (!owner) throw new CommandError('refused', 'The organization has no active administrator to issue a token for');
  const { clock } = services;
  const keys = await openSigningKeys({
    place: seedKeys(services, config),
    clock,
    sharedSecret: config.jwtSharedSecret,
  });
  const input = { name: 'Seeded', lifetimeMs: 30 * day, origin: operator };
  return (await issueTokenFor({ ...services, config, keys }, owner, input)).expose();
}

/**
 * Fills a store with users, groups and tokens in transactions of bounded size; creates store and organization where
 * there are none. Throws StartupError for a store of another schema, CommandError for a deleted organization.
 */
export async function seedStore(config: Config, input: SeedInput, progress: Progress): Promise<Seeded> {
  const services = operatorServices(await openSeedStore(config));
  try {
    const { id: orgId, slug, domain, isNew, password } = await organizationFor(services, input.password);
    const total = input.users + input.tokens;
    let done = 0;
    const advance = (count: number) => {
      done += count;
      progress(done, total);
    };
    await fill({ services, orgId, domain, input, advance });
    const token = input.token ? await usableToken(services, config, orgId) : null;
    return { organization: slug, isNew, password, token };
  } finally {
    await services.db.close();
  }
}
