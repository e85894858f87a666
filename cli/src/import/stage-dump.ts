import type { z } from 'zod';
import { isVerifiable } from '../../../server/src/access/passwords.ts';
import { foldCase } from '../../../server/src/text/plain-text.ts';
import { asObject, type DumpItem, readDump } from './dump-file.ts';
import {
  credentialsDocument,
  groupDocument,
  organizationDocument,
  rawTokenField,
  tokenDocument,
  userDocument,
} from './dump-records.ts';
import type { Progress } from './file-text.ts';
import { problemsOf } from './problems-of.ts';
import type { Staging } from './staging.ts';

type Document = Readonly<Record<string, unknown>>;

/** A dump that is being read. */
interface Reading {
  readonly staging: Staging;
  /** The one organization that documents may be of. */
  orgId: string | null;
}

type Stage = (reading: Reading, place: string, document: Document) => void;

/** The id of the organization is that of the first document that names one. */
function isOfOrganization(reading: Reading, orgId: string | null): boolean {
  reading.orgId ??= orgId;
  return orgId === null || orgId === reading.orgId;
}

/** Returns a function that reads a document and stages it, or reports its problems. */
function staged<S extends z.ZodType<{ readonly orgId?: string | null }>>(
  kind: 'users' | 'credentials' | 'groups' | 'tokens' | 'organization',
  schema: S,
  put: (staging: Staging, place: string, read: z.output<S>) => void,
): Stage {
  return (reading, place, document) => {
    const { staging } = reading;
    const parsed = schema.safeParse(document);
    if (!parsed.success) staging.refuse(kind, ...problemsOf(place, parsed.error));
    else if (isOfOrganization(reading, parsed.data.orgId ?? null)) put(staging, place, parsed.data);
    else staging.refuse(kind, { place, field: 'orgId', message: 'is another than in the documents before' });
  };
}

const stageOrganization = staged(
  'organization',
  organizationDocument.transform((read) => ({ ...read, orgId: read._id })),
  (staging, place, { _id: id, onBoardingStatus: onboardingStatus, createdAt, ...profile }) =>
    staging.put('organization', { place, id, key: 'one', content: { id, profile, onboardingStatus, createdAt } }),
);

const stageUser = staged('users', userDocument, (staging, place, { _id: id, ...read }) =>
  staging.put('users', { place, id, key: read.email, content: { user: { ...read, id }, groups: [] } }),
);

const stageCredentials = staged('credentials', credentialsDocument, (staging, place, read) => {
  const { userId: id, hashedPassword: passwordHash } = read;
  if (isVerifiable(passwordHash)) staging.put('credentials', { place, id, key: null, content: { passwordHash } });
  else staging.report.leave('passwords that cannot be verified here: these users set new ones');
});

/** Default groups are recognized by their types; deleted groups may have any name. */
const stageGroup = staged('groups', groupDocument, (staging, place, { _id: id, users: userIds, ...read }) => {
  const key = read.isDeleted ? null : foldCase(read.name);
  staging.put('groups', { place, id, key, content: { group: { ...read, id }, userIds } });
});

const stageValidToken = staged('tokens', tokenDocument, (staging, place, read) => {
  const { _id: id, tokenHash: hash, isRevoked, revokedAt, revokedBy: by, revokeReason, ...rest } = read;
  const reason = revokeReason || 'Revoked before the import';
  const revoked = isRevoked || revokedAt !== null ? { at: revokedAt ?? rest.createdAt, by, reason } : null;
  staging.put('tokens', { place, id, key: hash, content: { ...rest, id, hash, revoked } });
});

function stageToken(reading: Reading, place: string, document: Document): void {
  const field = rawTokenField(document);
  if (field === null) stageValidToken(reading, place, document);
  else reading.staging.refuse('tokens', { place, field, message: 'holds a token itself: only its hash is taken' });
}

/** By collection name, in any case and with hyphens and underscores. */
const stages: ReadonlyMap<string, Stage> = new Map([
  ['org', stageOrganization],
  ['orgs', stageOrganization],
  ['organization', stageOrganization],
  ['organizations', stageOrganization],
  ['users', stageUser],
  ['usercredentials', stageCredentials],
  ['groups', stageGroup],
  ['usergroups', stageGroup],
  ['tokens', stageToken],
  ['personalaccesstokens', stageToken],
]);

function stageItem(reading: Reading, { place, collection, document }: DumpItem): void {
  const { staging } = reading;
  const stage = stages.get(collection.toLowerCase().replaceAll(/[_-]/g, ''));
  const read = asObject(document);
  if (collection === '') {
    const message = 'is not JSON with a collection and a document';
    staging.report.problem({ place, field: 'the line', message });
  } else if (!stage) staging.report.leave('documents of other collections');
  else if (read) stage(reading, place, read);
  else staging.report.problem({ place, field: 'the document', message: 'must be an object' });
}

/** Stages a dump; returns the id of its organization, `null` where it names none. Rule: CLI-17. */
export async function stageDump(file: string, staging: Staging, progress: Progress): Promise<string | null> {
  const reading: Reading = { staging, orgId: null };
  for await (const item of readDump(file, progress)) stageItem(reading, item);
  return reading.orgId;
}
