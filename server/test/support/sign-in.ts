import type { Json, TestApp, TestResponse } from './test-app.ts';

interface Attempt {
  readonly email?: string;
  readonly password?: string;
  readonly method?: string;
  /** Given when sign-in begins; default: only when it continues. */
  readonly begunWith?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Begins to sign in; answers the value of `x-session-token`. */
export async function beginSignIn(app: TestApp, email?: string): Promise<string> {
  const { headers } = await app.anonymous.post('/userAccount/initAuth', email === undefined ? {} : { email });
  return headers.get('x-session-token') ?? '';
}

/** Tries to sign in, both calls with the same headers; answers the last call's answer. */
export async function attemptSignIn(app: TestApp, attempt: Attempt): Promise<TestResponse> {
  const { email, password, method = 'password', begunWith, headers = {} } = attempt;
  const token = await beginSignIn(app, begunWith);
  const credentials = password === undefined ? {} : { password };
  return app.anonymous.post(
    '/userAccount/authenticate',
    { method, credentials, ...(email === undefined ? {} : { email }) },
    { headers: { ...headers, 'x-session-token': token } },
  );
}

/** The claims in a compact JWT, its signature not looked at. */
export function claimsOf(jwt: string): Json {
  return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
}

/** A refusal without what differs from request to request. */
export function neutral({ status, body }: TestResponse): Json {
  const { requestId: _, data, ...error } = body.error;
  // Where JSON-RPC is spoken, what is ours is in `data`.
  const ours = data === undefined ? {} : { data: { ...data, requestId: undefined } };
  return { status, body: { ...body, error: { ...error, ...ours } } };
}
