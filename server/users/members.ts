import type { CreatedInvitation, CreateInvitation, Invitation, Member } from '../../contract/members.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type { Role } from '../../contract/roles.ts'
import { record, recordAll } from '../audit-log/record.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Author } from '../shared/scope.ts'
import type { InvitationEmails } from './account-emails.ts'
import {
  countInvitations,
  deleteInvitation,
  deleteInvitationsBy,
  deleteInvitationsOf,
  type LinkRow,
  selectInvitations,
} from './link-queries.ts'
import { linkUrl, makeLink } from './links.ts'
import {
  deleteMember,
  findMember,
  findMemberByEmail,
  hasOtherOwner,
  type MemberRow,
  selectMembers,
  updateRole,
} from './member-queries.ts'
import { mayAssign } from './roles.ts'

/** Most open invitations of an account: neither accepted nor expired. */
export const maxInvitations = 200

/** Where a change of members comes from: the account, and who makes it. */
export type MemberScope = { accountId: string; author: Author }

/** The members of accounts and the invitations to them. Throws DomainErrors. */
export type MemberService = {
  list(handle: Handle, accountId: string, page: PageQuery): Promise<Page<Member>>
  /**
   * Gives a member another role. Throws `not_found`, `authentication_error` when the author may not, and `last_owner`.
   */
  update(handle: Handle, scope: MemberScope, change: { userId: string; role: Role }): Promise<Member>
  /** Removes a member. Throws as `update` does. */
  remove(handle: Handle, scope: MemberScope, userId: string): Promise<void>
  listInvitations(handle: Handle, accountId: string, page: PageQuery): Promise<Page<Invitation>>
  /**
   * Makes an invitation, which replaces an earlier one of the same address. Throws `authentication_error` when the
   * author may not give the role or that of the earlier one, `conflict` for a member, for one invitation too many, and
   * for one email too many, and `not_found` when there is no such account.
   */
  invite(handle: Handle, scope: MemberScope, given: CreateInvitation): Promise<CreatedInvitation>
  /** Takes an invitation back. Throws `not_found`, and `authentication_error` when the author may not give its role. */
  deleteInvitation(handle: Handle, scope: MemberScope, id: string): Promise<void>
}

export type MemberServiceOptions = {
  clock: Clock
  /** Returns the URL of the service that links begin with, without a slash at the end. */
  serviceUrl: () => string
  /** How invitations are sent. Default: not by email; their links are returned. */
  emails?: InvitationEmails
}

export function createMemberService({ clock, serviceUrl, emails = null }: MemberServiceOptions): MemberService {
  /**
   * Runs `work` while no other change of the members of the account runs, with the present role of the author: it may
   * have been another one when the request came. The operator on the command line acts as an owner.
   */
  function changing<T>(handle: Handle, { accountId, author }: MemberScope, work: Changing<T>): Promise<T> {
    return inTransaction(handle, async (trx) => {
      await lockAccount(trx, accountId)
      const { type, id } = author.actor
      const member = type === 'user' && id !== null ? await findMember(trx, { accountId, userId: id }) : undefined
      const own = type === 'command_line' ? 'owner' : member?.role
      if (own === undefined)
        throw new DomainError('authentication_error', 'You are no member of this account any more.')
      return work(trx, own)
    })
  }

  async function memberToChange(trx: Trx, { accountId }: MemberScope, userId: string): Promise<MemberRow> {
    const member = await findMember(trx, { accountId, userId })
    if (member === undefined) throw new DomainError('not_found', `There is no member with the id "${userId}".`)
    return member
  }

  /** Writes an entry for each invitation that has ended and cannot be accepted any more. */
  async function recordEnded(trx: Trx, { accountId, author }: MemberScope, ended: readonly LinkRow[]): Promise<void> {
    const at = clock.now()
    await recordAll(
      trx,
      ended.map(({ id, email }) => {
        const target = { type: 'invitation', id, name: email } as const
        return { accountId, at, author, action: 'invitation.deleted', target }
      }),
    )
  }

  return {
    async list(handle, accountId, { limit, cursor }) {
      const rows = await selectMembers(handle, accountId, { limit, after: decodeCursor('user', cursor) })
      return pageOfRows(rows, { limit, idOf: ({ user_id }) => user_id, toItem: toMember })
    },
    async update(handle, scope, { userId, role }) {
      const { accountId, author } = scope
      return changing(handle, scope, async (trx, own) => {
        const before = await memberToChange(trx, scope, userId)
        assertMay(own, { from: before.role, to: role })
        if (before.role === role) return toMember(before)
        if (before.role === 'owner' && !(await hasOtherOwner(trx, { accountId, userId }))) throw lastOwner()
        await updateRole(trx, { accountId, userId, role })
        await recordEnded(trx, scope, await deleteInvitationsBy(trx, { accountId, userId }))
        const target = { type: 'user', id: userId, name: before.name } as const
        const details = { from: before.role, to: role }
        await record(trx, { accountId, at: clock.now(), author, action: 'member.role_changed', target, details })
        return toMember({ ...before, role })
      })
    },
    async remove(handle, scope, userId) {
      const { accountId, author } = scope
      await changing(handle, scope, async (trx, own) => {
        const before = await memberToChange(trx, scope, userId)
        assertMay(own, { from: before.role, to: null })
        if (before.role === 'owner' && !(await hasOtherOwner(trx, { accountId, userId }))) throw lastOwner()
        await deleteMember(trx, { accountId, userId })
        // Otherwise the removed member could come back with a link of their own.
        await recordEnded(trx, scope, await deleteInvitationsBy(trx, { accountId, userId }))
        await recordEnded(trx, scope, await deleteInvitationsOf(trx, { accountId, email: before.email }))
        const target = { type: 'user', id: userId, name: before.name } as const
        const details = { role: before.role }
        await record(trx, { accountId, at: clock.now(), author, action: 'member.removed', target, details })
      })
    },
    async listInvitations(handle, accountId, { limit, cursor }) {
      const after = decodeCursor('invitation', cursor)
      const rows = await selectInvitations(handle, accountId, { limit, after, now: clock.now() })
      return pageOfRows(rows, { limit, idOf: ({ id }) => id, toItem: toInvitation })
    },
    async invite(handle, scope, { email: given, role }) {
      const { accountId, author } = scope
      const email = given.toLowerCase()
      return changing(handle, scope, async (trx, own) => {
        assertMay(own, { from: null, to: role })
        if ((await findMemberByEmail(trx, { accountId, email })) !== undefined) {
          throw new DomainError('conflict', `"${email}" is a member of this account already.`)
        }
        const replaced = await deleteInvitationsOf(trx, { accountId, email })
        for (const { role: to } of replaced) assertMay(own, { from: null, to })
        await recordEnded(trx, scope, replaced)
        const at = clock.now()
        if ((await countInvitations(trx, { accountId, now: at })) >= maxInvitations) throw tooManyInvitations()
        const createdBy = author.actor.type === 'user' ? author.actor.id : null
        const { id, token, expiresAt } = await makeLink(trx, {
          kind: 'invitation',
          accountId,
          email,
          role,
          createdBy,
          byEmail: emails !== null,
          at,
        })
        await emails?.queue(trx, { accountId, linkId: id, email, at })
        const target = { type: 'invitation', id, name: email } as const
        await record(trx, { accountId, at, author, action: 'member.invited', target, details: { role } })
        const times = { expiresAt: expiresAt.toISOString(), createdAt: at.toISOString() }
        if (emails !== null) return { id, email, role, ...times, emailStatus: 'queued', link: null }
        return { id, email, role, ...times, emailStatus: 'none', link: linkUrl(serviceUrl(), token) }
      })
    },
    async deleteInvitation(handle, scope, id) {
      const { accountId } = scope
      await changing(handle, scope, async (trx, own) => {
        const gone = await deleteInvitation(trx, { accountId, id })
        if (gone === undefined) throw new DomainError('not_found', `There is no invitation with the id "${id}".`)
        assertMay(own, { from: null, to: gone.role })
        await recordEnded(trx, scope, [gone])
      })
    },
  }
}

type Changing<T> = (trx: Trx, own: Role) => Promise<T>

function assertMay(own: Role, change: { from: Role | null; to: Role | null }): void {
  if (mayAssign(own, change)) return
  throw new DomainError(
    'authentication_error',
    `Your role "${own}" does not allow this: only an owner makes, changes and removes owners.`,
  )
}

function tooManyInvitations(): DomainError {
  return new DomainError(
    'conflict',
    `The account has reached its limit of ${maxInvitations} open invitations: take one back, or wait until one expires.`,
  )
}

function lastOwner(): DomainError {
  return new DomainError('last_owner', 'This is the last owner of the account: make another member an owner first.')
}

function toMember(row: MemberRow): Member {
  return {
    userId: row.user_id,
    name: row.name,
    email: row.email,
    role: row.role,
    hasTotp: row.totp_confirmed_at !== null,
    lastSignedInAt: row.last_signed_in_at?.toISOString() ?? null,
    emailVerifiedAt: row.email_verified_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
  }
}

function toInvitation(row: LinkRow): Invitation {
  const { id, email, role, expires_at, created_at } = row
  if (email === null || role === null) throw new Error('an invitation lacks its address or role')
  const times = { expiresAt: expires_at.toISOString(), createdAt: created_at.toISOString() }
  return { id, email, role, ...times, emailStatus: emailStatusOf(row) }
}

function emailStatusOf({ by_email, emailed_at, email_failed_at }: LinkRow): Invitation['emailStatus'] {
  if (!by_email) return 'none'
  if (emailed_at !== null) return 'sent'
  return email_failed_at === null ? 'queued' : 'failed'
}
