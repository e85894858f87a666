import { addUsers } from '../../src/features/users/public.ts';
import type { TestApp } from './test-app.ts';

interface Made {
  readonly email: string;
  readonly fullName: string;
}

const numbered = (number: number): Made => ({ email: `user${number}@example.com`, fullName: `User ${number}` });

/**
 * Adds many users in one transaction, each in the group `everyone`; returns their ids in order.
 * @param newcomer makes a user from a unique number
 */
export async function addManyUsers(app: TestApp, count: number, newUser = numbered): Promise<string[]> {
  const { db } = app.services;
  const { id: orgId } = await db.read.selectFrom('organizations').select('id').executeTakeFirstOrThrow();
  return db.transaction((tx) => addUsers(tx, app.services, { orgId, count, newUser }));
}
