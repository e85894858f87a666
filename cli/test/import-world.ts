import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Json, TestApp } from '../../server/test/support/test-app.ts';
import { TestClock } from '../../server/test/support/test-clock.ts';
import { testStore } from '../../server/test/support/test-store.ts';
import { type CommandEnd, latchkey } from './command-process.ts';

/** A document of a dump, with its collection. */
export type Line = readonly [collection: string, document: Readonly<Record<string, unknown>>];

/** A service whose clock is that of the command. */
export function startNow(): Promise<TestApp> {
  return TestApp.start({}, new TestClock(Date.now()));
}

/** Runs an import of a file with this content on the store of a service. */
export async function importText(
  app: Pick<TestApp, 'dataDir'>,
  args: readonly string[],
  content: string | Uint8Array,
): Promise<CommandEnd> {
  const file = join(app.dataDir, 'import.txt');
  writeFileSync(file, content);
  const [noun = '', ...options] = args;
  const environment = { ...(await testStore(app.dataDir)), DATA_DIR: app.dataDir };
  return latchkey(['import', noun, file, ...options], { environment });
}

/** The same with `--json`, expected to succeed: what it printed. */
export async function imported(app: TestApp, args: readonly string[], content: string): Promise<Json> {
  const { code, stdout, stderr } = await importText(app, [...args, '--json'], content);
  if (code !== 0 || stderr !== '') throw new Error(`import ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

/** The same, expected to be rejected: returns the error. */
export async function refusedImport(app: TestApp, args: readonly string[], content: string): Promise<Json> {
  const { code, stdout, stderr } = await importText(app, [...args, '--json'], content);
  if (code !== 3 || stdout !== '') throw new Error(`import ended with ${code}: ${stdout}${stderr}`);
  return JSON.parse(stderr).error;
}

/** Documents as JSON Lines. */
export function toLines(lines: readonly Line[]): string {
  return lines.map(([collection, document]) => JSON.stringify({ collection, document })).join('\n');
}

const oid = (id: string | null) => (id === null ? null : { $oid: id });
const date = (ms: number | null) => (ms === null ? null : { $date: new Date(ms).toISOString() });

/** Returns the dump that another deployment of this API would make of a store, in MongoDB's extended JSON. */
export async function dumpOf({ services }: TestApp): Promise<Line[]> {
  const all = <T extends Parameters<typeof services.db.read.selectFrom>[0]>(table: T) =>
    services.db.read.selectFrom(table).selectAll().execute() as Promise<Json[]>;
  const [organizations, users, groups, members, passwords, tokens] = await Promise.all([
    all('organizations'),
    all('users'),
    all('user_groups'),
    all('group_members'),
    all('password_credentials'),
    all('personal_access_tokens'),
  ]);
  return [
    ...organizations.map(
      (org): Line => [
        'orgs',
        {
          _id: oid(org.id),
          accountType: org.account_type,
          contactEmail: org.contact_email,
          registeredName: org.registered_name,
          onBoardingStatus: org.onboarding_status,
          createdAt: date(org.created_at),
          __v: 0,
        },
      ],
    ),
    ...tokens.map(
      (token): Line => [
        'personalAccessTokens',
        {
          _id: oid(token.id),
          orgId: oid(token.org_id),
          userId: oid(token.user_id),
          name: token.name,
          tokenHash: Buffer.from(token.hash, 'base64url').toString('hex'),
          scopes: token.scopes.split(' '),
          createdAt: date(token.created_at),
          expiresAt: token.expires_at === null ? 'Never' : date(token.expires_at),
          lastUsedAt: date(token.last_used_at),
          isRevoked: token.revoked_at !== null,
          revokedAt: date(token.revoked_at),
          revokedBy: oid(token.revoked_by),
          revokeReason: token.revoke_reason,
        },
      ],
    ),
    ...groups.map(
      (group): Line => [
        'userGroups',
        {
          _id: oid(group.id),
          orgId: oid(group.org_id),
          name: group.name,
          type: group.type,
          users: members.filter(({ group_id: id }) => id === group.id).map(({ user_id: id }) => oid(id)),
          isDeleted: group.is_deleted === 1,
          createdAt: date(group.created_at),
        },
      ],
    ),
    ...users.map(
      (user): Line => [
        'users',
        {
          _id: oid(user.id),
          orgId: oid(user.org_id),
          fullName: user.full_name,
          email: user.email,
          ...(user.designation === null ? {} : { designation: user.designation }),
          hasLoggedIn: user.has_logged_in === 1,
          isDeleted: user.is_deleted === 1,
          deletedBy: oid(user.deleted_by),
          createdAt: date(user.created_at),
          updatedAt: date(user.updated_at),
        },
      ],
    ),
    ...passwords.map(
      (one): Line => ['userCredentials', { userId: oid(one.user_id), hashedPassword: one.password_hash }],
    ),
  ];
}

const time = '2026-01-02T03:04:05.678Z';

/** An id that a number stands for. */
export const idOf = (number: number) => number.toString(16).padStart(24, '0');

/** SHA-256 of a token, as hexadecimal digits. */
export const sha256 = (raw: string) => createHash('sha256').update(raw).digest('hex');

/** A valid user. */
export function user(number: number, more: Readonly<Record<string, unknown>> = {}): Line {
  const email = `person-${number}@example.com`;
  const times = { createdAt: time, updatedAt: time };
  return ['users', { _id: idOf(number), fullName: `Person ${number}`, email, ...times, ...more }];
}

/** A valid token of a user, the hash of which is that of `raw-<number>`. */
export function token(number: number, owner: number, more: Readonly<Record<string, unknown>> = {}): Line {
  const made = { tokenHash: sha256(`raw-${number}`), scopes: ['user:read'], createdAt: time, expiresAt: null };
  return [
    'personalAccessTokens',
    { _id: idOf(number), userId: idOf(owner), name: `Token ${number}`, ...made, ...more },
  ];
}

/** A valid group. */
export function group(number: number, users: readonly number[], more: Readonly<Record<string, unknown>> = {}): Line {
  const made = { type: 'custom', users: users.map(idOf), createdAt: time };
  return ['userGroups', { _id: idOf(number), name: `Group ${number}`, ...made, ...more }];
}

/** An organization with user 1 as its administrator. */
export const newOrganization: readonly Line[] = [
  [
    'organization',
    {
      _id: idOf(0xabc),
      accountType: 'business',
      contactEmail: 'person-1@example.com',
      registeredName: 'Example Ltd',
      createdAt: time,
    },
  ],
  user(1),
  group(0xad, [1], { name: 'admin', type: 'admin' }),
];
