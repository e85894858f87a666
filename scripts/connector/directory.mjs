// Users and teams in memory, in the forms that a connector backend returns.
import { randomBytes } from 'node:crypto';

const roles = ['OWNER', 'WRITER', 'READER'];

/** @typedef {{ userId: string, orgId: string }} Caller */
/** @typedef {{ userId: string, orgId: string, name?: string, email?: string, isAdmin?: boolean }} Known what is said of a user */
/** @typedef {{ userId: string, orgId?: string, name: string, email: string, isAdmin: boolean, sinceMs?: number }} Person */
/** @typedef {{ page: number, limit: number }} Paging */
/** @typedef {Paging & { search: string, madeBy?: string | null, sinceMs?: number, untilMs?: number }} Query */
/** @typedef {{ userId: string, role: string }} Role */
/** @typedef {Role & { joinedAt: number }} Member */
/** @typedef {{ addUserRoles?: readonly Role[], updateUserRoles?: readonly Role[], removeUserIds?: readonly string[] }} Changed */
/** @typedef {{ name: string, description?: string | null, members?: readonly Role[], userRoles?: readonly Role[] } & Changed} Given of a team */
/** @typedef {{ name: string, userId: string }} Named */
/** @typedef {'canRead' | 'canEdit' | 'canDelete' | 'canManageMembers'} Right */
/**
 * @typedef {object} Team
 * @property {string} id
 * @property {string} orgId
 * @property {string} name
 * @property {string | null} description
 * @property {Member[]} members
 * @property {string} creatorId
 * @property {number} createdMs
 * @property {number} updatedMs
 */

/** A refusal: its status, and what is said. */
export class Refusal extends Error {
  constructor(/** @type {number} */ status, /** @type {string} */ message) {
    super(message);
    this.status = status;
  }
}

/** Upper case first: that turns a sharp s into two letters. */
function fold(/** @type {string} */ text) {
  return text.normalize('NFC').toUpperCase().toLowerCase();
}

function has(/** @type {string} */ search, /** @type {string[]} */ ...texts) {
  return search === '' || texts.some((text) => fold(text).includes(fold(search)));
}

function byName(/** @type {Named} */ a, /** @type {Named} */ b) {
  const [one, other] = [fold(a.name) + a.userId, fold(b.name) + b.userId];
  return one < other ? -1 : 1;
}

/** @template T */
function page(/** @type {T[]} */ items, /** @type {Paging} */ { page: number, limit }) {
  const pages = Math.ceil(items.length / limit);
  return {
    items: items.slice((number - 1) * limit, number * limit),
    pagination: { page: number, limit, total: items.length, pages, hasNext: number < pages, hasPrev: number > 1 },
  };
}

/** All users and teams, of all organizations. */
export class Directory {
  /** @type {Map<string, Person>} */
  people = new Map();
  /** @type {Map<string, Team>} */
  teamsById = new Map();
  /** @type {() => number} */
  now;

  constructor(/** @type {() => number} */ now) {
    this.now = now;
  }

  /** Adds or updates a user; absent fields stay. */
  know(/** @type {Known} */ { userId, orgId, ...said }) {
    const known = this.people.get(userId) ?? { name: '', email: '', isAdmin: false, sinceMs: this.now() };
    const given = Object.entries(said).filter(([, value]) => value !== undefined);
    this.people.set(userId, { ...known, ...Object.fromEntries(given), userId, orgId });
  }

  /** Removes a user, from every team too. */
  forget(/** @type {string} */ userId) {
    this.people.delete(userId);
    for (const team of this.teamsById.values()) team.members = team.members.filter((one) => one.userId !== userId);
  }

  /** @returns {Person} */
  #person(/** @type {string} */ userId) {
    return this.people.get(userId) ?? { userId, name: '', email: '', isAdmin: false };
  }

  users(/** @type {Caller} */ { orgId }, /** @type {Query} */ { search, ...asked }) {
    const people = [...this.people.values()].filter((one) => one.orgId === orgId && has(search, one.name, one.email));
    const { items, pagination } = page(people.sort(byName), asked);
    const users = items.map(({ userId, name, email, sinceMs }) => ({
      id: userId,
      userId,
      orgId,
      name,
      email,
      isActive: true,
      createdAtTimestamp: sinceMs,
      updatedAtTimestamp: sinceMs,
    }));
    return { users, pagination };
  }

  teams(
    /** @type {Caller} */ caller,
    /** @type {Query} */ { search, madeBy, sinceMs = 0, untilMs = Number.POSITIVE_INFINITY, ...asked },
  ) {
    const mine = [...this.teamsById.values()].filter(
      ({ orgId, members, name, description, creatorId, createdMs }) =>
        orgId === caller.orgId &&
        (!madeBy || madeBy === creatorId) &&
        createdMs >= sinceMs &&
        createdMs <= untilMs &&
        members.some(({ userId }) => userId === caller.userId) &&
        has(search, name, description ?? ''),
    );
    const { items, pagination } = page(mine.reverse(), asked);
    return { teams: items.map((team) => this.#record(team, caller)), pagination };
  }

  members(/** @type {Caller} */ caller, /** @type {string} */ id, /** @type {Query} */ { search, ...asked }) {
    const team = this.#require(caller, id, 'canRead');
    const all = this.#members(team);
    const found = all.filter(({ userName, userEmail }) => has(search, userName, userEmail));
    const { items, pagination } = page(found, asked);
    const shown = { ...this.#record(team, caller), members: items };
    return { team: shown, members: items, pagination: { ...pagination, totalCount: pagination.total } };
  }

  team(/** @type {Caller} */ caller, /** @type {string} */ id) {
    return this.#record(this.#require(caller, id, 'canRead'), caller);
  }

  create(/** @type {Caller} */ caller, /** @type {Given} */ { name, description = null, ...given }) {
    const members = given.userRoles ?? given.members ?? [];
    const nowMs = this.now();
    const others = this.#checked(caller, members).filter(({ userId }) => userId !== caller.userId);
    const all = [{ userId: caller.userId, role: 'OWNER' }, ...others].map((one) => ({ ...one, joinedAt: nowMs }));
    const id = randomBytes(12).toString('hex');
    const { userId, orgId } = caller;
    const team = { id, orgId, name, description, members: all, creatorId: userId, createdMs: nowMs, updatedMs: nowMs };
    this.teamsById.set(id, team);
    return this.#record(team, caller);
  }

  update(
    /** @type {Caller} */ caller,
    /** @type {string} */ id,
    /** @type {Partial<Given>} */ { name, description, ...given },
  ) {
    const isOfMembers = Object.keys(given).length > 0;
    const team = this.#require(caller, id, isOfMembers ? 'canManageMembers' : 'canEdit');
    const members = isOfMembers ? (given.members ?? this.#changed(caller, team, given)) : undefined;
    if (members) {
      const joined = new Map(team.members.map(({ userId, joinedAt }) => [userId, joinedAt]));
      const all = this.#checked(caller, members);
      if (!all.some(({ role }) => role === 'OWNER')) throw new Refusal(409, 'A team needs an owner');
      team.members = all.map((one) => ({ ...one, joinedAt: joined.get(one.userId) ?? this.now() }));
    }
    if (name !== undefined) team.name = name;
    if (description !== undefined) team.description = description;
    team.updatedMs = this.now();
    return this.#record(team, caller);
  }

  #changed(/** @type {Caller} */ caller, /** @type {Team} */ team, /** @type {Changed} */ change) {
    const { addUserRoles = [], updateUserRoles = [], removeUserIds = [] } = change;
    const roleOf = new Map(team.members.map(({ userId, role }) => [userId, role]));
    for (const userId of [...updateUserRoles.map((one) => one.userId), ...removeUserIds]) {
      if (!roleOf.has(userId)) throw new Refusal(400, 'Not in the team');
    }
    for (const userId of removeUserIds) roleOf.delete(userId);
    for (const { userId, role } of this.#checked(caller, [...addUserRoles, ...updateUserRoles]))
      roleOf.set(userId, role);
    return [...roleOf].map(([userId, role]) => ({ userId, role }));
  }

  remove(/** @type {Caller} */ caller, /** @type {string} */ id) {
    this.teamsById.delete(this.#require(caller, id, 'canDelete').id);
  }

  #checked(/** @type {Caller} */ { orgId }, /** @type {readonly Role[]} */ members) {
    for (const { userId, role } of members) {
      if (!roles.includes(role)) throw new Refusal(400, 'No role of a team');
      if (this.people.get(userId)?.orgId !== orgId) throw new Refusal(400, 'Nobody here has this id');
    }
    return members.map(({ userId, role }) => ({ userId, role }));
  }

  #rights(/** @type {Team} */ team, /** @type {Caller} */ { userId }) {
    const role = team.members.find((one) => one.userId === userId)?.role;
    const { isAdmin } = this.#person(userId);
    return {
      canRead: role !== undefined || isAdmin,
      canEdit: role === 'OWNER' || role === 'WRITER',
      canDelete: role === 'OWNER' || isAdmin,
      canManageMembers: role === 'OWNER',
    };
  }

  #require(/** @type {Caller} */ caller, /** @type {string} */ id, /** @type {Right} */ right) {
    const team = this.teamsById.get(id);
    if (team?.orgId !== caller.orgId) throw new Refusal(404, 'Not found');
    const rights = this.#rights(team, caller);
    if (!rights.canRead) throw new Refusal(404, 'Not found');
    if (!rights[right]) throw new Refusal(403, 'Not allowed');
    return team;
  }

  #members(/** @type {Team} */ team) {
    return team.members
      .map((one) => ({ ...this.#person(one.userId), ...one }))
      .sort(byName)
      .map(({ userId, name, email, role, joinedAt }) => ({
        id: userId,
        userId,
        userName: name,
        userEmail: email,
        role,
        joinedAt,
        isOwner: role === 'OWNER',
      }));
  }

  #record(/** @type {Team} */ team, /** @type {Caller} */ caller) {
    const { canRead: _, ...rights } = this.#rights(team, caller);
    const { userId, name, email } = this.#person(team.creatorId);
    const creator = { userId, name, email };
    return {
      id: team.id,
      name: team.name,
      description: team.description,
      createdByUser: { id: team.creatorId, ...creator },
      orgId: team.orgId,
      memberCount: team.members.length,
      members: this.#members(team),
      createdAtTimestamp: team.createdMs,
      updatedAtTimestamp: team.updatedMs,
      ...rights,
    };
  }
}
