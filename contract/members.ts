import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { emailAddress, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { role } from './roles.ts'
import { outcome } from './route.ts'

const c = initContract()

const member = z
  .object({
    userId: idSchema('user', 'Identifies the user.'),
    name: z.string(),
    email: emailAddress,
    role,
    hasTotp: z.boolean().meta({ description: 'True when signing in needs a second factor.' }),
    lastSignedInAt: timestamp.nullable().meta({ description: 'When the user last signed in; null: never.' }),
    emailVerifiedAt: timestamp.nullable().meta({
      description: 'When the user used a link that went to their address by email; null: the address is not verified.',
    }),
    createdAt: timestamp.meta({ description: 'When the user became a member.' }),
  })
  .meta({
    id: 'Member',
    description: 'A user in an account.',
    example: {
      userId: exampleId('user'),
      name: 'Ada Lovelace',
      email: 'ada@example.com',
      role: 'developer',
      hasTotp: true,
      lastSignedInAt: '2026-03-01T09:30:00.000Z',
      emailVerifiedAt: '2026-03-01T09:30:00.000Z',
      createdAt: '2026-03-01T09:30:00.000Z',
    },
  })

export const memberPage = pageOf(member, 'MemberPage')

const updateMember = z.strictObject({ role }).meta({
  id: 'UpdateMember',
  description: 'The new role of the member.',
  example: { role: 'viewer' },
})

const invitation = z
  .object({
    id: idSchema('invitation', 'Identifies the invitation.'),
    email: emailAddress,
    role,
    emailStatus: z.enum(['none', 'queued', 'sent', 'failed']).meta({
      description:
        'What became of the email with the link. `none`: the service sends none, and the link was shown. `queued`: it waits, or is tried again. `sent`: a mail server took it. `failed`: the address was refused, or the service gave up after a day; invite the person again.',
    }),
    expiresAt: timestamp,
    createdAt: timestamp,
  })
  .meta({
    id: 'Invitation',
    description: 'A link that makes a person a member of the account.',
    example: {
      id: exampleId('invitation'),
      email: 'ada@example.com',
      role: 'developer',
      emailStatus: 'sent',
      expiresAt: '2026-03-08T09:30:00.000Z',
      createdAt: '2026-03-01T09:30:00.000Z',
    },
  })

const createdInvitation = invitation
  .extend({
    link: z.string().nullable().meta({
      description:
        'The link to send to the person, shown only once; null: it goes to the address by email, and is shown to no other person.',
    }),
  })
  .meta({
    id: 'CreatedInvitation',
    description: 'A new invitation.',
    example: {
      ...Object(invitation.meta()?.example),
      emailStatus: 'none',
      link: `https://postern.example.com/app/accept#token=${'x'.repeat(43)}`,
    },
  })

const createInvitation = z.strictObject({ email: emailAddress, role }).meta({
  id: 'CreateInvitation',
  description: 'Who is invited, and as what.',
  example: { email: 'ada@example.com', role: 'developer' },
})

export type Member = z.infer<typeof member>
export type Invitation = z.infer<typeof invitation>
export type CreatedInvitation = z.infer<typeof createdInvitation>
export type CreateInvitation = z.infer<typeof createInvitation>

const reading = { tag: 'Members', caller: 'session', permission: 'members:read' } as const
const writing = { tag: 'Members', caller: 'session', permission: 'members:write' } as const
const userParam = z.object({ userId: idSchema('user', 'Identifies the user.') })
const listQuery = z.strictObject(pageQuery)

export const members = c.router({
  list: {
    method: 'GET',
    path: '/v1/members',
    summary: 'List members',
    description: 'The users of the account, those who became users first at the front.',
    query: listQuery,
    ...outcome({ ...reading, operationId: 'listMembers', errors: ['not_found'] }, { 200: memberPage }),
  },
  update: {
    method: 'PATCH',
    path: '/v1/members/:userId',
    summary: 'Change the role of a member',
    description:
      'Holds for the next request of the member. Only an owner changes owners and makes owners. The last owner stays one.',
    pathParams: userParam,
    body: updateMember,
    ...outcome(
      { ...writing, operationId: 'updateMember', hasBody: true, errors: ['not_found', 'last_owner'] },
      { 200: member },
    ),
  },
  remove: {
    method: 'DELETE',
    path: '/v1/members/:userId',
    summary: 'Remove a member',
    description:
      'The user has no access to the account any more, from the next request on. Only an owner removes owners. The last owner stays.',
    pathParams: userParam,
    ...outcome({ ...writing, operationId: 'removeMember', errors: ['not_found', 'last_owner'] }, { 204: c.noBody() }),
  },
})

export const invitations = c.router({
  list: {
    method: 'GET',
    path: '/v1/invitations',
    summary: 'List invitations',
    description: 'Those that were neither accepted nor have expired, newest first.',
    query: listQuery,
    ...outcome(
      { ...reading, operationId: 'listInvitations', errors: ['not_found'] },
      { 200: pageOf(invitation, 'InvitationPage') },
    ),
  },
  create: {
    method: 'POST',
    path: '/v1/invitations',
    summary: 'Invite a person',
    description:
      'Makes a link that works once and for 7 days. The service sends it by email; where it sends no email to its users, the answer has the link, for you to send. Only an owner invites owners. An earlier invitation of the same address ends; 409 for a person who is a member already, and beyond 200 emails with invitations of an account, or 5 to one address, in 24 hours.',
    body: createInvitation,
    ...outcome(
      { ...writing, operationId: 'createInvitation', hasBody: true, errors: ['not_found', 'conflict'] },
      { 201: createdInvitation },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/invitations/:id',
    summary: 'Take an invitation back',
    description: 'Its link no longer works.',
    pathParams: z.object({ id: idSchema('invitation', 'Identifies the invitation.') }),
    ...outcome({ ...writing, operationId: 'deleteInvitation', errors: ['not_found'] }, { 204: c.noBody() }),
  },
})
