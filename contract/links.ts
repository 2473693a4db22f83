import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { boundedString, emailAddress, timestamp } from './fields.ts'
import { role } from './roles.ts'
import { outcome } from './route.ts'
import { session } from './sessions.ts'
import { password, secondFactor, userName } from './user.ts'

const c = initContract()

/** Characters of the token of a link: 32 bytes in base64url. */
const tokenLength = 43
const exampleToken = 'x'.repeat(tokenLength)
const token = boundedString(200).min(1).meta({
  description: 'What stands behind `token=` in the link.',
  example: exampleToken,
})

const linkKinds = ['first_user', 'invitation', 'password_reset'] as const

const lookUpLink = z.strictObject({ token }).meta({
  id: 'LookUpLink',
  description: 'The link to look at.',
  example: { token: exampleToken },
})

const link = z
  .object({
    kind: z.enum(linkKinds).meta({ description: 'What accepting it does.' }),
    email: emailAddress.nullable().meta({ description: 'Whom it is for; null: for the first user.' }),
    accountName: z.string().nullable().meta({ description: 'The account it leads into; null: none.' }),
    role: role.nullable().meta({ description: 'The role it gives there; null: none.' }),
    expiresAt: timestamp,
    hasUser: z.boolean().meta({ description: 'True when there is a user with this address already.' }),
  })
  .meta({
    id: 'Link',
    description: 'A link that works once.',
    example: {
      kind: 'invitation',
      email: 'ada@example.com',
      accountName: 'Acme',
      role: 'developer',
      expiresAt: '2026-03-08T09:30:00.000Z',
      hasUser: false,
    },
  })

const acceptLink = z
  .strictObject({
    token,
    name: userName.optional().meta({ description: 'The name of the new user; needed where `hasUser` is false.' }),
    email: emailAddress
      .optional()
      .meta({ description: 'The address of the first user; needed for a link of the kind `first_user` alone.' }),
    password: password.meta({
      description:
        'The new password, 12 to 256 characters and not the email address; for an invitation of a person who is a user already, their present password.',
    }),
    code: secondFactor.optional(),
  })
  .meta({
    id: 'AcceptLink',
    description: 'Who accepts the link.',
    example: { token: exampleToken, name: 'Ada Lovelace', password: 'correct horse battery staple' },
  })

const requestPasswordReset = z.strictObject({ email: emailAddress }).meta({
  id: 'RequestPasswordReset',
  description: 'The address of the user who forgot the password.',
  example: { email: 'ada@example.com' },
})

export type Link = z.infer<typeof link>
export type AcceptLink = z.infer<typeof acceptLink>

export const links = c.router({
  requestReset: {
    method: 'POST',
    path: '/v1/password-resets',
    summary: 'Ask for a link that resets a password',
    description:
      'Sends a link to the address by email, if there is a user with it. The answer is the same for every address, and so is the work before it. The link works once, for an hour. One for an address within 10 minutes; 10 requests of a client network in an hour.',
    body: requestPasswordReset,
    ...outcome(
      {
        operationId: 'requestPasswordReset',
        tag: 'Session',
        caller: 'none',
        permission: null,
        hasBody: true,
        errors: ['account_email_off'],
      },
      { 202: c.noBody() },
    ),
  },
  lookUp: {
    method: 'POST',
    path: '/v1/links/look-up',
    summary: 'Look at a link',
    description:
      'What a link that works once is for. It stays usable. An unknown, used or expired one is not there: 404.',
    body: lookUpLink,
    ...outcome(
      {
        operationId: 'lookUpLink',
        tag: 'Session',
        caller: 'none',
        permission: null,
        hasBody: true,
        errors: ['not_found'],
      },
      { 200: link },
    ),
  },
  accept: {
    method: 'POST',
    path: '/v1/links/accept',
    summary: 'Accept a link',
    description:
      'Uses a link: makes the user, adds the member, or sets the new password, and signs the user in. It works once; a refused request leaves it usable. Where the user has a second factor, `code` is needed: 401 `second_factor_needed` without it.',
    body: acceptLink,
    ...outcome(
      {
        operationId: 'acceptLink',
        tag: 'Session',
        caller: 'none',
        permission: null,
        hasBody: true,
        errors: ['authentication_error', 'second_factor_needed', 'not_found', 'conflict', 'rule_violation'],
      },
      { 201: session },
    ),
  },
})
