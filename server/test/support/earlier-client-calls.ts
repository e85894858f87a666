import { expect } from 'vitest';
import { onePixel } from './made-pictures.ts';
import { type Client, type Json, organization, password } from './test-app.ts';

/** What calls need of earlier ones, and who calls. */
export interface State {
  readonly values: Record<string, Json>;
  readonly clients: Record<string, Client>;
}

/** A call of a client of the earlier API, with what its pages read of the response. */
export interface Call {
  readonly name: string;
  readonly method: string;
  readonly path: (values: Json) => string;
  /** Default: the administrator. */
  readonly by?: string;
  readonly body?: (values: Json) => Json;
  readonly headers?: (values: Json) => Record<string, string>;
  readonly form?: (values: Json) => FormData;
  /** Default: 200. */
  readonly status?: number;
  /** Fields that a page reads, `list.0.field` in lists. */
  readonly reads?: readonly string[];
  readonly answers?: (values: Json) => Json;
  readonly saves?: Readonly<Record<string, string>>;
  /** The client that the response signs in. */
  readonly signsIn?: string;
  /** What has to be there before. */
  readonly needs?: 'users' | 'code' | 'link';
  /** Why the call does not work here; its status says how it is refused. */
  readonly refusedFor?: string;
}

type More = Partial<Omit<Call, 'name' | 'method' | 'path'>>;

function call(name: string, address: string, more: More = {}): Call {
  const [method = '', path = ''] = address.split(' ');
  const filled = (values: Json) => path.replace(/:(\w+)/g, (_, key: string) => values[key] ?? '');
  return { name, method, path: filled, ...more };
}

function formOf(
  bytes: string | Uint8Array<ArrayBuffer>,
  name: string,
  fields: Readonly<Record<string, string>> = {},
): FormData {
  const form = new FormData();
  form.append('file', new Blob([bytes]), name);
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  return form;
}

const picture = () => formOf(new Uint8Array(onePixel()), 'picture.png');
const anonymous = { by: 'anonymous' } as const;
const signInHeader = ({ begun }: Json) => ({ 'x-session-token': begun });
const bearer = (name: string) => (values: Json) => ({ authorization: `Bearer ${values[name]}` });
const email = organization.contactEmail;
const withPassword = () => ({ email, method: 'password', credentials: { password } });
const invalidSession = () => ({
  error: { message: expect.stringMatching(/invalid session/i) },
  message: expect.stringMatching(/invalid session/i),
});
const pagination = ['totalCount', 'totalPages', 'page', 'limit', 'hasNextPage', 'hasPrevPage'];
const paged = pagination.map((field) => `pagination.${field}`);
const teamPaged = ['page', 'limit', 'total', 'pages', 'hasNext', 'hasPrev'].map((field) => `pagination.${field}`);
const userFields = ['_id', 'orgId', 'fullName', 'email', 'hasLoggedIn', 'isDeleted', 'createdAt', 'updatedAt', 'slug'];
const listed = ['id', 'userId', 'name', 'email', 'hasLoggedIn', 'isActive', 'role', 'groupCount', 'userGroups'];
const listedUsers = [...listed, 'createdAtTimestamp'].map((field) => `users.0.${field}`);
const groupFields = ['_id', 'name', 'type', 'orgId', 'isDeleted', 'createdAt', 'updatedAt', 'slug'];
const teamFields = ['id', 'name', 'description', 'orgId', 'createdAtTimestamp', 'updatedAtTimestamp', 'memberCount']
  .concat(['canEdit', 'canDelete', 'canManageMembers'])
  .concat(['id', 'userId', 'name', 'email'].map((field) => `createdByUser.${field}`))
  .concat(
    ['id', 'userId', 'userName', 'userEmail', 'role', 'joinedAt', 'isOwner'].map((field) => `members.0.${field}`),
  );
const inTeam = teamFields.map((field) => `team.${field}`);
const orgFields = ['_id', 'registeredName', 'domain', 'contactEmail', 'accountType', 'onBoardingStatus', 'isDeleted'];
const tokenFields = ['id', 'name', 'scopes', 'createdAt', 'expiresAt'];

const signIn: readonly Call[] = [
  call('is there an organization', 'GET /org/exists', { ...anonymous, answers: () => ({ exists: false }) }),
  call('sign up', 'POST /org', {
    ...anonymous,
    body: () => organization,
    reads: [...orgFields, 'slug', 'createdAt', 'updatedAt'],
  }),
  call('begin to sign in, without a body', 'POST /userAccount/initAuth', {
    ...anonymous,
    reads: ['currentStep', 'allowedMethods', 'message', 'authProviders'],
    saves: { begun: 'x-session-token' },
  }),
  call('sign in with an old session token', 'POST /userAccount/authenticate', {
    ...anonymous,
    headers: () => ({ 'x-session-token': 'old' }),
    body: withPassword,
    status: 401,
    answers: invalidSession,
  }),
  call('sign in without a session token', 'POST /userAccount/authenticate', {
    ...anonymous,
    body: withPassword,
    status: 401,
    answers: invalidSession,
  }),
  call('sign in by password', 'POST /userAccount/authenticate', {
    ...anonymous,
    headers: signInHeader,
    body: withPassword,
    answers: () => ({ message: 'Fully authenticated' }),
    saves: { refreshToken: 'refreshToken' },
    signsIn: 'admin',
  }),
  call('refresh', 'POST /userAccount/refresh/token', {
    ...anonymous,
    headers: bearer('refreshToken'),
    reads: ['accessToken'],
  }),
  call('refresh with the token that was used already', 'POST /userAccount/refresh/token', {
    ...anonymous,
    headers: bearer('refreshToken'),
    reads: ['accessToken'],
    signsIn: 'admin',
  }),
  call('show the methods of sign-in', 'GET /orgAuthConfig/authMethods', {
    reads: ['authMethods.0.order', 'authMethods.0.allowedMethods.0.type'],
  }),
  call('set the methods of sign-in', 'POST /orgAuthConfig/updateAuthMethod', {
    body: () => ({ authMethod: [{ order: 1, allowedMethods: [{ type: 'password' }, { type: 'otp' }] }] }),
  }),
  call('set the methods of sign-in, by the address for the first time', 'POST /orgAuthConfig', {
    body: () => ({ authMethod: [{ order: 1, allowedMethods: [{ type: 'password' }, { type: 'otp' }] }] }),
    reads: ['message'],
  }),
  call('ask for a code', 'POST /userAccount/login/otp/generate', {
    ...anonymous,
    headers: signInHeader,
    body: () => ({ email }),
  }),
  call('sign in by code', 'POST /userAccount/authenticate', {
    ...anonymous,
    needs: 'code',
    headers: signInHeader,
    body: ({ code }) => ({ email, method: 'otp', credentials: { otp: code } }),
    reads: ['accessToken', 'refreshToken'],
  }),
  call('ask for a code, without a session token', 'POST /userAccount/login/otp/generate', {
    ...anonymous,
    body: () => ({ email }),
  }),
  ...[
    { method: 'google', credentials: 'token' },
    { method: 'microsoft', credentials: { accessToken: 'token', idToken: 'token' } },
    { method: 'oauth', credentials: { accessToken: 'token' } },
  ].map((body) =>
    call(`sign in with a token of ${body.method}`, 'POST /userAccount/authenticate', {
      ...anonymous,
      headers: signInHeader,
      body: () => body,
      status: 400,
      refusedFor: 'single sign-on goes through the service (method oidc): a token of a provider is no proof',
    }),
  ),
  call('exchange the code of a provider', 'POST /userAccount/oauth/exchange', {
    ...anonymous,
    headers: signInHeader,
    body: () => ({ code: 'code', provider: 'oauth', redirectUri: 'https://example.com/auth/oauth/callback' }),
    status: 404,
    refusedFor: 'the service itself is where the provider leads back to',
  }),
  call('begin to sign in with SAML', 'GET /saml/signIn?email=ada@example.com', {
    ...anonymous,
    status: 404,
    refusedFor: 'there is no SAML, only OpenID Connect',
  }),
  call('confirm a new address', 'PUT /userAccount/validateEmailChange', {
    ...anonymous,
    headers: () => ({ authorization: 'Bearer token' }),
    body: () => ({}),
    status: 404,
    refusedFor: 'the mailed link leads to a page of the service',
  }),
];

const profile: readonly Call[] = [
  call('show the own profile', 'GET /users/:adminId', { needs: 'users', reads: userFields }),
  call('list the own groups', 'GET /userGroups/users/:adminId', { reads: ['0.type', '0.name', '0._id'] }),
  call('show the own address', 'GET /users/:adminId/email', { answers: () => ({ email }) }),
  call('show the own picture, without one', 'GET /users/dp', { reads: ['errorMessage'] }),
  call('set the own picture', 'PUT /users/dp', { form: picture, status: 201 }),
  call('show the own picture', 'GET /users/dp', { headers: () => ({ accept: 'image/*, */*' }) }),
  call('remove the own picture', 'DELETE /users/dp', {}),
  call('give the own name, at the first sign-in', 'PUT /users/:adminId', {
    body: () => ({ fullName: 'Ada King', email }),
    answers: () => ({ fullName: 'Ada King' }),
  }),
  call('change the profile', 'PUT /users/:adminId', {
    body: () => ({ fullName: 'Ada King', designation: 'Countess' }),
    status: 400,
    refusedFor: 'the specification requires email; PATCH /users/:id/fullname and /designation change one field',
  }),
  call('change the own address', 'PUT /users/:graceId', {
    by: 'grace',
    body: () => ({ email: 'grace@navy.example' }),
    answers: () => ({ email: 'grace@navy.example' }),
  }),
];

const organizationCalls: readonly Call[] = [
  call('how far is the set-up', 'GET /org/onboarding-status', { answers: () => ({ status: 'notConfigured' }) }),
  call('the set-up is done', 'PUT /org/onboarding-status', { body: () => ({ status: 'configured' }) }),
  call('the set-up is left out', 'PUT /org/onboarding-status', { body: () => ({ status: 'skipped' }) }),
  call('show the organization', 'GET /org', { reads: [...orgFields, 'slug', 'createdAt', 'updatedAt'] }),
  call('change the organization, in the set-up', 'PUT /org', {
    body: () => ({
      registeredName: 'Example Ltd',
      shortName: 'Example',
      permanentAddress: { addressLine1: '12 Square', city: 'London', state: '', postCode: 'SW1', country: 'UK' },
    }),
  }),
  call('change the organization, in the settings', 'PUT /org', {
    body: () => ({
      registeredName: 'Example Ltd',
      shortName: 'Example',
      contactEmail: email,
      permanentAddress: { city: 'London' },
      dataCollectionConsent: true,
    }),
  }),
  call('show the logo, without one', 'GET /org/logo', { status: 204 }),
  call('set the logo', 'PUT /org/logo', { form: picture, status: 201 }),
  call('show the logo', 'GET /org/logo'),
  call('remove the logo', 'DELETE /org/logo'),
  call('set the mail server, without a login', 'POST /configurationManager/smtpConfig', {
    body: () => ({ host: 'smtp.example.com', port: 587, fromEmail: 'no-reply@example.com' }),
  }),
  call('set the mail server', 'POST /configurationManager/smtpConfig', {
    body: () => ({
      host: 'smtp.example.com',
      port: 587,
      fromEmail: 'no-reply@example.com',
      username: 'mailer',
      password: 'Kept-To-Itself-9',
    }),
  }),
  call('show the mail server', 'GET /configurationManager/smtpConfig', { reads: ['host', 'port', 'fromEmail'] }),
];

const groups: readonly Call[] = [
  call('list groups', 'GET /userGroups?page=1&limit=25&search=', {
    reads: [...groupFields, 'userCount'].map((field) => `groups.0.${field}`).concat(paged),
  }),
  call('list groups by the time they were made', 'GET /userGroups?createdAfter=2020-01-01&createdBefore=2100-01-01', {
    reads: paged,
  }),
  call('make a group', 'POST /userGroups', {
    body: () => ({ name: 'Research', type: 'custom' }),
    status: 201,
    reads: groupFields,
    saves: { groupId: '_id' },
  }),
  call('add users to groups', 'POST /userGroups/add-users', {
    body: ({ graceId, groupId }) => ({ userIds: [graceId], groupIds: [groupId] }),
  }),
  call('show a group', 'GET /userGroups/:groupId', { reads: groupFields }),
  call('list the members of a group', 'GET /userGroups/:groupId/users?page=1&limit=25&search=gr', {
    reads: [...['_id', 'fullName', 'email', 'profilePicture'].map((field) => `users.0.${field}`), ...paged],
  }),
  call('count groups', 'GET /userGroups/stats/list', { reads: ['0._id'] }),
  call('rename a group', 'PUT /userGroups/:groupId', { body: () => ({ name: 'Lab' }), reads: groupFields }),
  call('remove users from groups', 'POST /userGroups/remove-users', {
    body: ({ graceId, groupId }) => ({ userIds: [graceId], groupIds: [groupId] }),
  }),
];

const role = (userId: string, name: string) => [{ userId, role: name }];
const teams: readonly Call[] = [
  call('make a team', 'POST /teams', {
    body: ({ graceId }) => ({ name: 'Compilers', description: 'COBOL', userRoles: role(graceId, 'READER') }),
    status: 201,
    reads: inTeam,
    answers: () => ({ team: { memberCount: 2 } }),
    saves: { teamId: 'team.id' },
  }),
  call('list the own teams', 'GET /teams/user/teams?page=1&limit=25', {
    reads: ['status', 'message', ...teamFields.map((field) => `teams.0.${field}`), ...teamPaged],
  }),
  call(
    'list the own teams by maker and time',
    'GET /teams/user/teams?created_by=:adminId&created_after=1&created_before=99999999999999',
    { answers: () => ({ pagination: { total: 1 } }) },
  ),
  call('list the teams to share with', 'GET /teams/user/teams?page=1&limit=100&search=comp', {
    reads: ['teams.0.id', 'teams.0.name', 'teams.0.description', 'teams.0.memberCount'],
  }),
  call('show a team', 'GET /teams/:teamId', { reads: inTeam }),
  call('rename a team', 'PUT /teams/:teamId', {
    body: () => ({ name: 'Languages', description: 'All' }),
    answers: () => ({ team: { name: 'Languages', description: 'All' } }),
  }),
  call('change the role of a member', 'PUT /teams/:teamId', {
    body: ({ graceId }) => ({ updateUserRoles: role(graceId, 'WRITER') }),
    answers: () => ({ team: { members: expect.arrayContaining([expect.objectContaining({ role: 'WRITER' })]) } }),
  }),
  call('remove a member', 'PUT /teams/:teamId', {
    body: ({ graceId }) => ({ removeUserIds: [graceId] }),
    answers: () => ({ team: { memberCount: 1 } }),
  }),
  call('add a member', 'PUT /teams/:teamId', {
    body: ({ graceId }) => ({ addUserRoles: role(graceId, 'READER') }),
    answers: () => ({ team: { memberCount: 2 } }),
  }),
  call('list the members of a team', 'GET /teams/:teamId/users?page=1&limit=25&search=', {
    reads: ['team.memberCount', ...teamFields.filter((f) => f.startsWith('members.')).map((f) => `team.${f}`)],
    answers: () => ({ pagination: { totalCount: 2 } }),
  }),
  call('delete a team', 'DELETE /teams/:teamId'),
];

const users: readonly Call[] = [
  call('list users', 'GET /users?page=1&limit=25', { reads: [...listedUsers, ...paged] }),
  call('list users to share with', 'GET /users?page=1&limit=100&search=ada', { reads: listedUsers }),
  call('list users who have not signed in', 'GET /users?page=1&limit=25&hasLoggedIn=false', { reads: paged }),
  call('list blocked users', 'GET /users?page=1&limit=25&isBlocked=true', {
    answers: () => ({ users: [], pagination: { totalCount: 0 } }),
  }),
  call('list the users of a group', 'GET /users?page=1&limit=25&groupIds=:groupId', {
    answers: () => ({ pagination: { totalCount: 0 } }),
  }),
  call('list users with groups', 'GET /users/fetch/with-groups', {
    reads: ['_id', 'orgId', 'fullName', 'hasLoggedIn', 'groups.0.name', 'groups.0.type'].map((field) => `0.${field}`),
  }),
  call('find users by id', 'POST /users/by-ids', {
    body: ({ graceId }) => ({ userIds: [graceId] }),
    reads: ['0._id', '0.fullName', '0.email'],
  }),
  call('list users of the graph', 'GET /users/graph/list?page=1&limit=25&search=', {
    reads: ['id', 'userId', 'name', 'email', 'isActive', 'createdAtTimestamp'].map((field) => `users.0.${field}`),
  }),
  call('invite users', 'POST /users/bulk/invite', {
    body: () => ({ emails: ['one@example.com'] }),
    reads: ['message'],
  }),
  call('invite users into groups', 'POST /users/bulk/invite', {
    body: ({ groupId }) => ({ emails: ['two@example.com'], groupIds: [groupId], role: 'member' }),
  }),
  call('invite administrators', 'POST /users/bulk/invite', {
    body: () => ({ emails: ['three@example.com'], role: 'admin' }),
  }),
  call('invite users from a file', 'POST /users/bulk/invite/upload', {
    form: ({ groupId }) =>
      formOf('name,email\r\nFour,four@example.com\r\n', 'users.csv', { groupIds: JSON.stringify([groupId]) }),
    reads: ['message'],
  }),
  call('find who was invited', 'GET /users?page=1&limit=25&search=four', {
    answers: ({ groupId }) => ({
      users: [{ groupCount: 1, userGroups: expect.arrayContaining([expect.objectContaining({ _id: groupId })]) }],
    }),
    saves: { invitedId: 'users.0.userId' },
  }),
  call('invite again', 'POST /users/:invitedId/resend-invite', {}),
  call('cancel an invitation', 'DELETE /users/:invitedId', { reads: ['message'] }),
  call('unblock a user', 'PUT /users/:graceId/unblock'),
  call('change the role of a user', 'PUT /users/:graceId', {
    body: () => ({ role: 'admin' }),
    status: 400,
    refusedFor: 'a role is membership of the group admin: POST /userGroups/add-users and remove-users',
  }),
  call('delete a group', 'DELETE /userGroups/:groupId'),
];

const tokens: readonly Call[] = [
  call('list scopes', 'GET /personal-access-tokens/scopes', {
    reads: ['name', 'description', 'category', 'requiresUserConsent'].map((field) => `scopes.0.${field}`),
  }),
  call('make a token', 'POST /personal-access-tokens', {
    body: () => ({ name: 'laptop', scopes: ['user:read'], expiryDays: 90 }),
    status: 201,
    reads: [...tokenFields, 'accessToken'].map((field) => `token.${field}`),
    saves: { tokenId: 'token.id' },
  }),
  call('make a token that never expires', 'POST /personal-access-tokens', {
    body: () => ({ name: 'server', expiryDays: 'never' }),
    status: 201,
    answers: () => ({ token: { expiresAt: 'Never' } }),
  }),
  call('list tokens', 'GET /personal-access-tokens', {
    reads: [...tokenFields, 'lastUsedAt'].map((field) => `tokens.0.${field}`),
  }),
  call('revoke a token', 'DELETE /personal-access-tokens/:tokenId', { body: () => ({ reason: 'lost' }) }),
];

const leaving: readonly Call[] = [
  call('forget the password', 'POST /userAccount/password/forgot', { ...anonymous, body: () => ({ email }) }),
  call('set a new password by the mailed link', 'POST /userAccount/password/reset/token', {
    ...anonymous,
    needs: 'link',
    headers: bearer('link'),
    body: () => ({ password: 'Willow-Anchor-52' }),
    reads: ['data'],
  }),
  call('change the password', 'POST /userAccount/password/reset', {
    by: 'grace',
    body: () => ({ currentPassword: password, newPassword: 'Copper-Lantern-38' }),
    reads: ['data', 'accessToken'],
    signsIn: 'grace',
  }),
  call('sign out', 'POST /userAccount/logout/manual', { by: 'grace' }),
];

/** The calls, in an order in which each finds what it needs. */
export const calls = [signIn, profile, organizationCalls, groups, teams, users, tokens, leaving].flat();
