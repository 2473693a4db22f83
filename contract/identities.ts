import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { boundedString, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { proveAgain } from './passkeys.ts'
import { outcome } from './route.ts'
import { session } from './sessions.ts'

const c = initContract()

/** How long a user may take to sign in at the identity provider. Minutes. */
export const providerMinutes = 10

const identity = z
  .object({
    id: idSchema('identity', 'Identifies the link.'),
    issuer: z.string().meta({ description: 'The identity provider: its issuer identifier.' }),
    label: z
      .string()
      .nullable()
      .meta({ description: 'What the provider called the user when they were linked; null: nothing.' }),
    lastUsedAt: timestamp.nullable().meta({ description: 'When it last signed the user in; null: never.' }),
    createdAt: timestamp,
  })
  .meta({
    id: 'Identity',
    description: 'A user of the identity provider that a user is linked to.',
    example: {
      id: exampleId('identity'),
      issuer: 'https://login.example.com',
      label: 'ada@example.com',
      lastUsedAt: '2026-03-01T10:00:00.000Z',
      createdAt: '2026-03-01T09:30:00.000Z',
    },
  })

const providerRequest = z
  .object({ url: z.string().meta({ description: 'The page of the identity provider that the browser goes to.' }) })
  .meta({
    id: 'ProviderRequest',
    description: 'Where a user signs in at the identity provider.',
    example: { url: 'https://login.example.com/auth?client_id=postern' },
  })

const providerAnswer = z
  .strictObject({
    code: boundedString(2_048).min(1).meta({ description: '`code` of the query.', example: 'SplxlOBeZQQYbYS6WxSbIA' }),
    state: boundedString(200).min(1).meta({ description: '`state` of the query.', example: 'af0ifjsldkj' }),
    iss: boundedString(2_048)
      .min(1)
      .optional()
      .meta({ description: '`iss` of the query, if it has one.', example: 'https://login.example.com' }),
  })
  .meta({
    id: 'ProviderAnswer',
    description: 'What the identity provider added to the address that it led the browser back to.',
    example: { code: 'SplxlOBeZQQYbYS6WxSbIA', state: 'af0ifjsldkj', iss: 'https://login.example.com' },
  })

export type Identity = z.infer<typeof identity>
export type ProviderRequest = z.infer<typeof providerRequest>
export type ProviderAnswer = z.infer<typeof providerAnswer>

const ofSession = { tag: 'Session', caller: 'session', permission: null } as const
const open = { tag: 'Session', caller: 'none', permission: null } as const

export const identities = c.router({
  begin: {
    method: 'POST',
    path: '/v1/session/provider/options',
    summary: 'Begin to sign in with the identity provider',
    description: `Returns the page of the identity provider (OpenID Connect), and sets a cookie that binds its answer to this browser for ${providerMinutes} minutes. 404 where the service has none, 503 while it does not answer.`,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        ...open,
        operationId: 'beginProviderSignIn',
        readsDatabase: false,
        hasBody: true,
        errors: ['not_found', 'unavailable'],
      },
      { 200: providerRequest },
    ),
  },
  signIn: {
    method: 'POST',
    path: '/v1/session/provider',
    summary: 'Sign in with the identity provider',
    description:
      'Starts a session of the user who is linked to the issuer and subject that the provider names, and sets its cookie. The provider replaces password and second factor. Email addresses are not compared. 401 for an answer that this browser did not ask for, that was used or is too old, and for a person whom no user is linked to.',
    body: providerAnswer,
    ...outcome(
      { ...open, operationId: 'signInWithProvider', hasBody: true, errors: ['authentication_error', 'not_found'] },
      { 201: session },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/user/identities',
    summary: 'List your links to identity providers',
    description: 'The users of identity providers that the user is linked to, newest first.',
    query: z.strictObject(pageQuery),
    ...outcome({ ...ofSession, operationId: 'listIdentities' }, { 200: pageOf(identity, 'IdentityPage') }),
  },
  options: {
    method: 'POST',
    path: '/v1/user/identities/options',
    summary: 'Begin to link the identity provider',
    description:
      'Returns the page of the identity provider, as `beginProviderSignIn` does. Asks for the password again, and where the user has a second factor for `code`: 401 `second_factor_needed` without it. A user without a password must have signed in within the last ten minutes. 409 for a user who is linked already.',
    body: proveAgain,
    ...outcome(
      {
        ...ofSession,
        operationId: 'beginIdentity',
        hasBody: true,
        errors: ['second_factor_needed', 'not_found', 'conflict'],
      },
      { 200: providerRequest },
    ),
  },
  add: {
    method: 'POST',
    path: '/v1/user/identities',
    summary: 'Link the identity provider',
    description:
      'Links the user to the issuer and subject that the provider names, in the session that began it. 409 when another user is linked to them, and for a user who is linked already.',
    body: providerAnswer,
    ...outcome(
      { ...ofSession, operationId: 'addIdentity', hasBody: true, errors: ['not_found', 'conflict'] },
      { 201: identity },
    ),
  },
  remove: {
    method: 'DELETE',
    path: '/v1/user/identities/:id',
    summary: 'Remove a link to an identity provider',
    description:
      'The provider signs the user in no more. Sessions that it started go on. 409 for the last way in: a user without password and passkey.',
    pathParams: z.object({ id: idSchema('identity', 'Identifies the link.') }),
    ...outcome({ ...ofSession, operationId: 'removeIdentity', errors: ['not_found', 'conflict'] }, { 204: c.noBody() }),
  },
})
