import { z } from 'zod';
import { givenPassword } from '../../access/password-rules.ts';
import { endpoint, endpoints } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { userRecord } from './user.ts';
import { edit } from './user-actions.ts';
import { fieldBodies, wholeBody } from './user-change.ts';

const params = z.object({ id: id.describe('Of the user') });
const response = { 200: userRecord };

const currentPassword = givenPassword
  .optional()
  .describe(
    'One’s own, where one changes one’s own address: with it, the link in the mail to the new address is enough to verify it; otherwise the password is asked for there. Nothing else needs it',
  );
const emailBody = fieldBodies.email.extend({ currentPassword });

/** Rules: USER-22 to USER-24, USER-27 to USER-29, USER-32, USER-33. */
export const updateUserField = endpoints(
  [
    { field: 'fullname', name: 'updateUserFullName', what: 'full name' },
    { field: 'firstName', name: 'updateUserFirstName', what: 'first name' },
    { field: 'lastName', name: 'updateUserLastName', what: 'last name' },
    { field: 'designation', name: 'updateUserDesignation', what: 'job title' },
    { field: 'email', name: 'updateUserEmail', what: 'e-mail address' },
  ],
  ({ field, name, what }) =>
    endpoint({
      method: 'PATCH',
      path: `/users/:id/${field}`,
      operationId: name,
      tag: 'Users',
      summary: `Change a user's ${what}`,
      errors: field === 'email' ? [409] : [],
      policy: { who: 'adminOrSelf', scope: 'user:write' },
      params,
      body: field === 'email' ? emailBody : fieldBodies[field],
      response,
      handle: edit,
    }),
);

/** Rules: USER-25 to USER-33. */
export const updateUser = endpoint({
  method: 'PUT',
  path: '/users/:id',
  tag: 'Users',
  summary: 'Change the given fields of a user',
  errors: [409],
  policy: { who: 'adminOrSelf', scope: 'user:write' },
  tool: {
    name: 'update_user',
    title: 'Change a user',
    description:
      'Changes the given fields of a user and leaves the rest; null clears a field. The e-mail address has to be given, changed ' +
      'or not: get_user returns it. A user’s own address, changed, is unverified until the link in the mail to it is opened; never ask anyone for ' +
      'currentPassword.',
  },
  params,
  body: wholeBody.extend({ currentPassword }),
  response,
  handle: edit,
});
