/** An error of the API: status, code and text for the caller. */
export interface ErrorDefinition {
  readonly status: number;
  /** The stable word that programs match (`error.code`). */
  readonly code: string;
  /** The public sentence. `{name}` is filled from the error's parameters; secrets never go in. */
  readonly text: string;
  /** The word of RFC 6749, section 5.2, on OAuth endpoints, where the status alone doesn't say it. */
  readonly oauth?: string;
  /** The body is `{ errorMessage }` and nothing else, where the specification says so. Rule: ERR-4. */
  readonly spelling?: 'errorMessage';
}

const badRequest = { status: 400, code: 'BAD_REQUEST' };
const invalid = { status: 400, code: 'VALIDATION_ERROR' };
const unauthorized = { status: 401, code: 'UNAUTHORIZED' };
const forbidden = { status: 403, code: 'FORBIDDEN' };
const conflict = { status: 409, code: 'CONFLICT' };
const unsupported = { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' };
const unavailable = { status: 503, code: 'UNAVAILABLE' };
const rateLimited = { status: 429, code: 'RATE_LIMITED' };

/**
 * All errors of the API, closed: a call site names one and fills its parameters, nothing else. Literal texts that
 * clients match are contracts. Rules: ERR-2, ERR-10 to ERR-29.
 */
export const apiErrors = {
  invalidInput: { ...invalid, text: 'The request is not valid. {summary}' },
  doubledHeader: { ...badRequest, text: 'The header {header} may be sent only once' },
  unreadableRequest: { ...badRequest, text: 'The request is not valid HTTP' },
  hostMissing: { ...badRequest, text: 'The header Host is required' },
  pictureEmpty: { ...badRequest, text: 'The picture is empty' },
  pictureTooLarge: {
    ...badRequest,
    text: 'The picture is too large: at most 40 megapixels over all its frames, and 16,384 pixels a side',
  },
  pictureUndecodable: {
    ...badRequest,
    text: 'The picture cannot be decoded: it is damaged, incomplete or in an unusual format',
  },
  connectorUsersFailed: { ...badRequest, text: 'Failed to get users' },
  connectorTeamsFailed: { ...badRequest, text: 'Failed to get user teams' },
  connectorRefused: { ...badRequest, text: 'The connector backend does not take this request' },
  inviteAccepted: { ...badRequest, text: 'User has already accepted the invite' },
  idempotencyUnsupported: {
    ...badRequest,
    text: 'A connector backend keeps the teams, which takes no Idempotency-Key: leave the header out',
  },
  configurationWrong: {
    ...badRequest,
    text: 'The new configuration is not valid, and the old one stays: {variable} is not valid; see the log',
  },
  oidcNotConfigured: {
    ...badRequest,
    text: 'Single sign-on is not configured: set OIDC_ISSUER, or PUT /api/v1/settings/oidc',
  },
  signInLocksOut: {
    ...badRequest,
    text: 'You could not sign in any more: in step {step} you would need {methods}, which you, or this service, lack',
  },
  signOnNotProved: {
    ...badRequest,
    text: 'Step {step} would depend on single sign-on, and no administrator has signed in by it since the provider was last set: also allow another method, sign in by single sign-on once, and try again',
  },
  mailNotConfigured: {
    ...badRequest,
    text: 'Mail is not configured: set SMTP_URL (and MAIL_FROM), or store the mail server with PUT /api/v1/settings/smtp',
  },
  clientNamedTwice: { ...badRequest, text: 'Name the client once: by HTTP Basic, or in the body' },
  grantUnsupported: {
    ...badRequest,
    text: 'This takes the grant_type client_credentials',
    oauth: 'unsupported_grant_type',
  },
  serviceScopeInvalid: { ...badRequest, text: 'This client may have: {scopes}', oauth: 'invalid_scope' },
  everyoneStays: { ...badRequest, text: 'Users leave the group everyone only by being deleted' },
  scopeNotGrantable: { status: 400, code: 'INVALID_SCOPE', text: 'Scope unknown or not grantable here: {scopes}' },
  tokenAdministratorRequired: { status: 400, code: 'ADMIN_REQUIRED', text: 'Admin access required' },

  clientInvalid: { ...unauthorized, text: 'The client is unknown, or its secret is wrong' },
  clientNeedsSecret: {
    ...unauthorized,
    text: 'Send id and secret of a service client here, by HTTP Basic or as client_id and client_secret, and no bearer token',
  },
  credentialMissing: { ...unauthorized, text: 'Send a bearer token in the Authorization header' },
  signInRefused: { ...unauthorized, text: 'The credentials are not valid' },
  signInNotStarted: { ...unauthorized, text: 'Invalid session: sign-in has not begun or took too long' },
  tokenInvalid: { status: 401, code: 'TOKEN_INVALID', text: 'The token is not valid' },
  tokenExpired: { status: 401, code: 'TOKEN_EXPIRED', text: 'The token has expired' },
  tokenRevoked: { status: 401, code: 'TOKEN_REVOKED', text: 'The token was revoked' },
  sessionExpired: { status: 401, code: 'SESSION_EXPIRED', text: 'Session expired, please login again' },

  scopeMissing: { status: 403, code: 'INSUFFICIENT_SCOPE', text: 'Insufficient scope. Required: {scopes}' },
  administratorRequired: { status: 403, code: 'ADMIN_REQUIRED', text: 'Admin access required' },
  administratorOrSelfRequired: { ...forbidden, text: 'Only an administrator or the user in question may do this' },
  introspectionNotAllowed: { ...forbidden, text: 'This takes a client with the scope TOKEN_INTROSPECT' },
  businessRequired: { ...forbidden, text: 'This takes an organization with a business account' },
  inviteLinksOff: { ...forbidden, text: 'Copying invitation links is switched off here (INVITE_LINKS)' },
  connectorForbidden: { ...forbidden, text: 'The connector backend does not allow this' },
  groupManaged: { ...forbidden, text: 'This group belongs to the system and cannot be renamed or deleted' },
  teamRightMissing: { ...forbidden, text: 'Your role in this team does not allow this' },
  webhookOfOthers: {
    ...forbidden,
    text: 'The address and the secret of this webhook are changed in a session, or by the token that created it',
  },
  clientOfOthers: {
    ...forbidden,
    text: 'The secret of this service client is rotated in a session, or by the token that created the client',
  },
  originForeign: { ...forbidden, text: 'Pages of this origin are not allowed: see CORS_ORIGINS' },
  administratorBySession: {
    ...forbidden,
    text: 'Administrators are created and invited in a session, not with a personal access token',
  },
  sessionRequired: { ...forbidden, text: 'This takes a session, not a personal access token' },

  notFound: { status: 404, code: 'NOT_FOUND', text: 'Not found' },
  methodNotAllowed: { status: 405, code: 'METHOD_NOT_ALLOWED', text: 'This address does not take that method' },
  requestTooSlow: { status: 408, code: 'REQUEST_TIMEOUT', text: 'The request did not arrive in time' },

  organizationExists: { ...conflict, text: 'This system already has an organization' },
  connectorConflict: { ...conflict, text: 'The connector backend reports a conflict with existing data' },
  idempotencyKeyInUse: {
    ...conflict,
    text: 'The request with this Idempotency-Key is still being carried out: repeat it in a moment',
  },
  groupNameTaken: { ...conflict, text: 'A group with this name exists already' },
  lastAdministrator: { ...conflict, text: 'The organization needs an administrator: add another one first' },
  teamOwnerNeeded: { ...conflict, text: 'A team needs an owner: name at least one member with the role OWNER' },
  emailTaken: { ...conflict, text: 'A user with this e-mail address exists already' },
  emailHeldUnverified: {
    ...conflict,
    text: 'Another user has this e-mail address and has not verified it: open the link that was mailed there and enter your password, and it becomes yours',
  },
  administratorNotDeletable: {
    ...conflict,
    text: 'This user is an administrator: remove the user from the admin group first, then delete',
  },
  everybodyActive: {
    ...conflict,
    text: 'No one is left to invite: every e-mail already has an active account',
    spelling: 'errorMessage',
  },
  settingNeeded: { ...conflict, text: 'Users could not sign in without this: change the sign-in methods first' },
  lastSignOn: {
    ...conflict,
    text: 'No other administrator has signed in by single sign-on, which a sign-in step depends on: allow another method first',
  },
  tooManyWebhooks: { ...conflict, text: 'There are {max} webhooks already: delete one first' },
  userActive: { ...conflict, text: 'This user is active: there is nothing to restore' },
  emailOfDeletedUser: {
    ...conflict,
    text: 'A deleted user has this e-mail address: restore that user instead of creating another',
  },

  eventsGone: {
    status: 410,
    code: 'GONE',
    text: 'Events before {oldest} are no longer kept: continue with after={after}',
  },
  linkGone: { status: 410, code: 'GONE', text: 'This link was used or replaced, or has expired: ask for a new one' },

  bodyTooLarge: { status: 413, code: 'PAYLOAD_TOO_LARGE', text: 'The body is larger than {limit} bytes' },
  fileTooLarge: { status: 413, code: 'PAYLOAD_TOO_LARGE', text: 'The file is larger than {limit} bytes' },
  bodyNotForm: { ...unsupported, text: 'Send the file as multipart/form-data' },
  bodyNotJson: { ...unsupported, text: 'Send the body as application/json in UTF-8' },
  bodyEncoded: { ...unsupported, text: 'Send the body without a Content-Encoding' },
  pictureTypeUnsupported: { ...unsupported, text: 'The picture has to be a PNG, JPEG, WebP or GIF' },

  idempotencyKeyReused: {
    status: 422,
    code: 'IDEMPOTENCY_KEY_REUSED',
    text: 'This Idempotency-Key was used for another request: use a new key for each request',
  },
  tooManyRequests: { ...rateLimited, text: 'Too many requests: try again in {seconds} s' },
  signInBlocked: { ...rateLimited, text: 'Too many failed attempts: blocked until {until} [blockedUntil:{until}]' },
  headersTooLarge: { status: 431, code: 'HEADERS_TOO_LARGE', text: 'The request has too many or too large headers' },

  internal: { status: 500, code: 'INTERNAL', text: 'Something went wrong on our side' },
  storeUnavailable: { ...unavailable, text: 'The store cannot be used right now: try again shortly' },
  inviteMailFailed: {
    status: 502,
    code: 'UPSTREAM_BAD_ANSWER',
    text: 'The invite mail could not be sent. Please check the SMTP configuration',
  },
  oidcFailed: { status: 502, code: 'UPSTREAM_BAD_ANSWER', text: 'The provider of single sign-on failed: {said}' },
  testMailFailed: { status: 502, code: 'UPSTREAM_BAD_ANSWER', text: 'The test mail did not go out: {said}' },
  connectorBadAnswer: {
    status: 502,
    code: 'UPSTREAM_BAD_ANSWER',
    text: 'The response of the connector backend is not valid',
  },
  connectorUnavailable: { ...unavailable, text: 'The connector backend cannot be reached: try again shortly' },
  connectorTimeout: { status: 504, code: 'UPSTREAM_TIMEOUT', text: 'The connector backend took too long' },
  relayStopped: { ...unavailable, text: 'Events are not being relayed' },
  overloaded: { ...unavailable, text: 'Too much work at once: try again shortly' },
} as const satisfies Record<string, ErrorDefinition>;
