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
      createdAt: '2026-03-01T09:30:00.000Z',
    },
  })

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
      expiresAt: '2026-03-08T09:30:00.000Z',
      createdAt: '2026-03-01T09:30:00.000Z',
    },
  })

const createdInvitation = invitation
  .extend({ link: z.string().meta({ description: 'The link to send to the person. It is shown only once.' }) })
  .meta({
    id: 'CreatedInvitation',
    description: 'A new invitation, with its link.',
    example: {
      ...Object(invitation.meta()?.example),
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
    ...outcome(
      { ...reading, operationId: 'listMembers', errors: ['not_found'] },
      { 200: pageOf(member, 'MemberPage') },
    ),
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
      'Makes a link that works once and for 7 days. Send it to the person yourself. Only an owner invites owners. An earlier invitation of the same address ends; 409 for a person who is a member already.',
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
    description: 'Its link works no more.',
    pathParams: z.object({ id: idSchema('invitation', 'Identifies the invitation.') }),
    ...outcome({ ...writing, operationId: 'deleteInvitation', errors: ['not_found'] }, { 204: c.noBody() }),
  },
})
