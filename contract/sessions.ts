import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { emailAddress, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { permissions } from './permissions.ts'
import { role } from './roles.ts'
import { outcome } from './route.ts'
import { password, secondFactor, user } from './user.ts'

const c = initContract()

/** Sessions end after this time without a use, and after this time in all. Days. */
export const sessionDays = { idle: 7, max: 30 } as const

const accountOfUser = z
  .object({
    id: idSchema('account', 'Identifies the account: the value of `X-Postern-Account`.'),
    name: z.string(),
    plan: z.string().meta({ description: 'The name of the plan of the account.' }),
    role,
    permissions: z.array(z.enum(permissions)).meta({ description: 'What the role allows in this account.' }),
  })
  .meta({
    id: 'AccountOfUser',
    description: 'An account that a user is a member of.',
    example: {
      id: exampleId('account'),
      name: 'Acme',
      plan: 'scale',
      role: 'viewer',
      permissions: ['emails:read', 'events:read'],
    },
  })

export const session = z
  .object({
    user,
    session: z.object({
      id: idSchema('session', 'Identifies the session.'),
      createdAt: timestamp,
      expiresAt: timestamp.meta({ description: 'When it ends if it is not used before.' }),
    }),
    accounts: z.array(accountOfUser).meta({ description: 'The accounts of the user, oldest first.' }),
  })
  .meta({
    id: 'Session',
    description: 'Who is signed in, until when, and where.',
    example: {
      user: user.meta()?.example,
      session: {
        id: exampleId('session'),
        createdAt: '2026-03-01T09:30:00.000Z',
        expiresAt: '2026-03-08T09:30:00.000Z',
      },
      accounts: [accountOfUser.meta()?.example],
    },
  })

const signIn = z
  .strictObject({
    email: emailAddress,
    password,
    code: secondFactor.optional(),
  })
  .meta({
    id: 'SignIn',
    description: 'Who signs in.',
    example: { email: 'ada@example.com', password: 'correct horse battery staple' },
  })

const listedSession = z
  .object({
    id: idSchema('session', 'Identifies the session.'),
    createdAt: timestamp,
    lastUsedAt: timestamp.meta({ description: 'When it was last used, to the minute.' }),
    ipAddress: z.string().meta({ description: 'The client address that it was last used from.' }),
    userAgent: z.string().meta({ description: 'What the browser called itself when it signed in.' }),
    isCurrent: z.boolean().meta({ description: 'True for the session of this request.' }),
    expiresAt: timestamp.meta({ description: 'When it ends if no request comes before.' }),
  })
  .meta({
    id: 'ListedSession',
    description: 'A session of the user.',
    example: {
      id: exampleId('session'),
      createdAt: '2026-03-01T09:30:00.000Z',
      lastUsedAt: '2026-03-01T10:00:00.000Z',
      ipAddress: '192.0.2.7',
      userAgent: 'Mozilla/5.0',
      isCurrent: true,
      expiresAt: '2026-03-08T10:00:00.000Z',
    },
  })

export type Session = z.infer<typeof session>
export type SignIn = z.infer<typeof signIn>
export type ListedSession = z.infer<typeof listedSession>

const ofSession = { tag: 'Session', caller: 'session', permission: null } as const

export const sessions = c.router({
  create: {
    method: 'POST',
    path: '/v1/session',
    summary: 'Sign in',
    description:
      'Starts a session of the dashboard and sets its cookie. An unknown address and a wrong password get the same answer. Where the user has a second factor and `code` is missing, the answer is 401 `second_factor_needed`. Each failure for an address makes the next try from the same client wait longer: 429 with `Retry-After`.',
    body: signIn,
    ...outcome(
      {
        operationId: 'createSession',
        tag: 'Session',
        caller: 'none',
        permission: null,
        hasBody: true,
        errors: ['authentication_error', 'second_factor_needed'],
      },
      { 201: session },
    ),
  },
  current: {
    method: 'GET',
    path: '/v1/session',
    summary: 'Get the session',
    description: 'Who is signed in, and the accounts they are a member of with what they may do there.',
    ...outcome({ ...ofSession, operationId: 'getSession' }, { 200: session }),
  },
  deleteCurrent: {
    method: 'DELETE',
    path: '/v1/session',
    summary: 'Sign out',
    description: 'Ends the session and removes its cookie.',
    ...outcome({ ...ofSession, operationId: 'deleteSession' }, { 204: c.noBody() }),
  },
  list: {
    method: 'GET',
    path: '/v1/sessions',
    summary: 'List your sessions',
    description: 'The sessions of the user that have not ended, newest first.',
    query: z.strictObject(pageQuery),
    ...outcome({ ...ofSession, operationId: 'listSessions' }, { 200: pageOf(listedSession, 'SessionPage') }),
  },
  end: {
    method: 'DELETE',
    path: '/v1/sessions/:id',
    summary: 'End one of your sessions',
    description: 'Ends a session of the user at once.',
    pathParams: z.object({ id: idSchema('session', 'Identifies the session.') }),
    ...outcome({ ...ofSession, operationId: 'endSession', errors: ['not_found'] }, { 204: c.noBody() }),
  },
  endOthers: {
    method: 'DELETE',
    path: '/v1/sessions',
    summary: 'End your other sessions',
    description: 'Ends all sessions of the user but the one of this request.',
    ...outcome({ ...ofSession, operationId: 'endOtherSessions' }, { 204: c.noBody() }),
  },
})
