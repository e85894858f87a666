import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { second } from '../../src/base/clock.ts';
import { plain } from '../support/made-pictures.ts';
import { linkIn, MailServer } from '../support/mail-server.ts';
import { resetWith } from '../support/recovery.ts';
import { codeIn } from '../support/sign-in-desk.ts';
import { type Client, organization, password, type TestResponse } from '../support/test-app.ts';
import { insist, TwoNodes } from '../support/two-nodes.ts';

const email = organization.contactEmail;
const atOnce = 12;

const inOrder = (statuses: readonly number[]) => statuses.toSorted((one, two) => one - two);
const statusesOf = (responses: readonly TestResponse[]) => inOrder(responses.map(({ status }) => status));
/** One that wins, and the others. */
const oneOf = (won: number, lost: number) => inOrder([won, ...Array.from({ length: atOnce - 1 }, () => lost)]);

describe('two nodes: what is done at both at the same moment', () => {
  let nodes: TwoNodes;
  let mails: MailServer;
  let admin: Client;
  beforeAll(async () => {
    mails = await MailServer.start();
    nodes = await TwoNodes.start({ SMTP_URL: mails.url, MAIL_FROM: 'no-reply@latchkey.test' });
  });
  afterAll(async () => {
    await nodes.close();
    await mails.stop();
  });

  /** Does something at both nodes by turns, all at once. */
  const atBoth = (work: (place: number, node: TwoNodes['a']) => Promise<TestResponse>) =>
    Promise.all(
      Array.from({ length: atOnce }, (_, place) => {
        const node = place % 2 === 0 ? nodes.a : nodes.b;
        return insist(
          () => work(place, node),
          ({ status }) => status,
        );
      }),
    );

  it('200 for one who founds the organization, 409 for all others, and both nodes know it (ORG-12, NODE-2)', async () => {
    const responses = await atBoth((place, { anonymous }) =>
      anonymous.post('/org', { ...organization, registeredName: `Number ${place}` }),
    );
    expect(statusesOf(responses)).toEqual(oneOf(200, 409));
    const rows = await nodes.a.services.db.read.selectFrom('organizations').selectAll().execute();
    expect(rows).toHaveLength(1);
    expect((await nodes.a.events()).map(({ event_type: type }) => type)).toEqual(['orgCreated', 'userAdded']);
    admin = await nodes.b.signIn(email);
    expect((await nodes.a.with(admin.credential).get('/org')).body.registeredName).toBe(rows[0]?.registered_name);
  });

  it('201: requests with one Idempotency-Key make one team, whichever node gets them (FIT-135, FIT-137)', async () => {
    const responses = await atBoth((_, node) =>
      node.with(admin.credential).post('/teams', { name: 'At both' }, { headers: { 'idempotency-key': 'at-both' } }),
    );
    const made = responses.filter(({ status }) => status === 201);
    expect(responses.filter(({ status }) => status !== 201 && status !== 409)).toEqual([]);
    expect(made.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1);
    expect(new Set(made.map(({ body }) => body.team.id)).size).toBe(1);
    const rows = await nodes.a.services.db.read.selectFrom('teams').where('name', '=', 'At both').selectAll().execute();
    expect(rows).toHaveLength(1);
  });

  it('201 for one of many people with one address; numbers and events have no gaps (STORE-3, STORE-5, NODE-2)', async () => {
    const same = await atBoth((_, node) =>
      node.with(admin.credential).post('/users', { fullName: 'Grace Hopper', email: 'grace@example.com' }),
    );
    expect(statusesOf(same)).toEqual(oneOf(201, 409));
    const others = await atBoth((place, node) =>
      node.with(admin.credential).post('/users', { fullName: 'Some Body', email: `some-${place}@example.com` }),
    );
    expect(new Set(statusesOf(others))).toEqual(new Set([201]));
    expect(new Set(others.map(({ body }) => body._id)).size).toBe(atOnce);
    const events = await nodes.b.events();
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, place) => place + 1));
    const added = [...same, ...others].filter(({ status }) => status === 201).map(({ body }) => body._id);
    expect(new Set(events.slice(2).map(({ payload }) => payload.userId))).toEqual(new Set(added));
    const users = nodes.a.services.db.read.selectFrom('users').select('slug').orderBy('slug');
    expect((await users.execute()).map(({ slug }) => slug)).toEqual(
      events.slice(1).map((_, place) => `user-${1001 + place}`),
    );
  });

  it('a sign-in that begins at one node ends at the other, with a code that the other mailed (AUTH-6, NODE-2)', async () => {
    const { a, b } = nodes;
    const authMethod = [{ order: 1, allowedMethods: [{ type: 'password' }, { type: 'otp' }] }];
    await admin.post('/orgAuthConfig/updateAuthMethod', { authMethod });
    const begun = await a.anonymous.post('/userAccount/initAuth', { email });
    const headers = { 'x-session-token': begun.headers.get('x-session-token') ?? '' };
    expect((await b.anonymous.post('/userAccount/login/otp/generate', { email })).status).toBe(200);
    const otp = codeIn(await mails.mailTo(email));
    const body = { method: 'otp', credentials: { otp }, email };
    const responses = await atBoth((_, { anonymous }) =>
      anonymous.post('/userAccount/authenticate', body, { headers }),
    );
    expect(statusesOf(responses)).toEqual(oneOf(200, 401));
  });

  it('a link works once, at whichever node (LINK-2, NODE-2)', async () => {
    mails.clear();
    expect((await nodes.a.anonymous.post('/userAccount/password/forgot', { email })).status).toBe(200);
    const token = linkIn(await mails.mailTo(email)).split('#token=')[1] ?? '';
    const responses = await atBoth((_, node) => resetWith(node, token, password));
    expect(statusesOf(responses)).toEqual(oneOf(200, 410));
    admin = await nodes.a.signIn(email);
  });

  it('a refresh token that was exchanged at one node is known at the other: valid for 10 s, then it ends the family (AUTH-16, AUTH-17, NODE-2)', async () => {
    const { a, b } = nodes;
    const { body: first } = await a.signInTokens(email);
    const refresh = (node: TwoNodes['a'], token: string) => node.with(token).post('/userAccount/refresh/token');
    const exchanged = await atBoth((_, node) => refresh(node, first.refreshToken));
    expect(new Set(statusesOf(exchanged))).toEqual(new Set([200]));
    const next = exchanged[0]?.body;
    expect((await b.with(next.accessToken).get('/org')).status).toBe(200);
    a.clock.advance(11 * second);
    expect((await refresh(b, first.refreshToken)).status).toBe(401);
    expect((await a.with(next.accessToken).get('/org')).status).toBe(401);
    expect((await refresh(a, next.refreshToken)).status).toBe(401);
  });

  it('both nodes publish the same keys, and have the same pictures (AUTH-34, PICTURE-8, NODE-2)', async () => {
    const keys = await Promise.all(nodes.both.map(({ anonymous }) => anonymous.get('//.well-known/jwks.json')));
    expect(keys[0]?.body).toEqual(keys[1]?.body);
    expect(keys[0]?.body.keys).toHaveLength(1);
    expect(
      (await admin.upload('/users/dp', new Uint8Array(await plain(200, 100, 'red').png().toBuffer()))).status,
    ).toBe(201);
    const pictures = await Promise.all([admin, nodes.atB(admin)].map((client) => client.get('/users/dp')));
    expect(pictures[0]?.bytes.length).toBeGreaterThan(100);
    expect(pictures[0]?.bytes).toEqual(pictures[1]?.bytes);
  });
});
