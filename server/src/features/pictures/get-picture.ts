import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { pictureResponse } from './picture.ts';
import { selectPicture } from './picture-store.ts';

/** Rules: PICTURE-2, PICTURE-3. */
export const getDisplayPicture = endpoint({
  method: 'GET',
  path: '/users/dp',
  tag: 'Pictures',
  summary: "Get the caller's own picture",
  policy: { who: 'member', scope: 'user:read' },
  response: { 200: z.union([pictureResponse, z.object({ errorMessage: z.string() })]) },
  async handle({ db }, { caller: { userId } }) {
    return (await selectPicture(db.read, userId)) ?? { errorMessage: 'User picture not found' };
  },
});

/** Rule: PICTURE-6. */
export const getLogo = endpoint({
  method: 'GET',
  path: '/org/logo',
  tag: 'Pictures',
  summary: "Get the organization's logo",
  policy: { who: 'member', scope: 'org:read' },
  response: { 200: pictureResponse, 204: z.undefined() },
  async handle({ db }, { caller: { orgId } }) {
    return (await selectPicture(db.read, orgId)) ?? undefined;
  },
});
